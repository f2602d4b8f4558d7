"""The example of an Interconnect works as it stands on nodes as the embedded cluster makes them."""

import pathlib

import cluster
import yaml

from lstqueue.kube import port

PATH = pathlib.Path(__file__).resolve().parents[2] / "examples" / "topology" / "interconnect-kind.yaml"


@cluster.virtual
async def test_the_example_makes_zones_racks_and_an_nvlink_domain() -> None:
    async with cluster.run(nodes=20) as made:
        made.create(port.INTERCONNECTS, yaml.safe_load(PATH.read_text(encoding="utf-8")))
        found = made.store.get(port.INTERCONNECTS, None, "fabric")

        def told() -> str:
            nonlocal found
            found = made.store.get(port.INTERCONNECTS, None, "fabric")
            return (found.get("status") or {}).get("summary", "")

        await made.until(lambda: told() == "zone 1, rack 2, nvl 1", "its levels are told")
        states = {item["type"]: item["status"] for item in found["status"]["conditions"]}
        assert states == {"Accepted": "True", "Ready": "True", "SourcesRead": "True", "Stale": "False"}
        assert found["status"]["leftOutCount"] == 0

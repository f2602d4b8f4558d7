"""Label and field selectors, in lists."""

import pytest

from lstqueue.kube import port
from tests.conformance.samples import CONFIG_MAPS, config_map, deadline_job, names, pod, refused

LABELS = {
    "bare": {"set": "s"},
    "blue": {"set": "s", "color": "blue", "size": "1"},
    "empty": {"set": "s", "color": ""},
    "prefixed": {"set": "s", "example.com/color": "red"},
    "red": {"set": "s", "color": "red", "size": "2"},
}
ACCEPTED = [
    ("color=red", ["red"]),
    ("color==red", ["red"]),
    ("color = red", ["red"]),
    ("color!=red", ["bare", "blue", "empty", "prefixed"]),
    ("color=", ["empty"]),
    ("color", ["blue", "empty", "red"]),
    ("!color", ["bare", "prefixed"]),
    ("color in (red,blue)", ["blue", "red"]),
    ("color in (red, blue)", ["blue", "red"]),
    ("color in (red)", ["red"]),
    ("color notin (red,blue)", ["bare", "empty", "prefixed"]),
    ("color in (,red)", ["empty", "red"]),
    ("example.com/color=red", ["prefixed"]),
    ("color=red,size=2", ["red"]),
    ("color=red,size=1", []),
    ("color,size notin (1)", ["empty", "red"]),
    ("!color,!example.com/color", ["bare"]),
    ("color in (red,blue),size!=1", ["red"]),
    ("size=2 , color", ["red"]),
    ("other", []),
    ("other!=x", ["bare", "blue", "empty", "prefixed", "red"]),
]
REFUSED = [
    "color in red",
    "color in (red",
    "=red",
    "color=a b",
    "color===red",
    "a/b/c=d",
    "!color=red",
    "color=red,,size=2",
]


@pytest.fixture
async def labelled(api: port.KubeApi, namespace: str) -> str:
    for name, labels in LABELS.items():
        await api.create(CONFIG_MAPS, namespace, config_map(name, labels=labels))
    return namespace


@pytest.mark.parametrize(("selector", "expected"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
async def test_label_selector(api: port.KubeApi, labelled: str, selector: str, expected: list[str]) -> None:
    page = await api.list_page(CONFIG_MAPS, namespace=labelled, labels=f"set=s,{selector}")
    assert names(page) == expected


@pytest.mark.parametrize("selector", REFUSED)
async def test_malformed_label_selectors_are_400(api: port.KubeApi, namespace: str, selector: str) -> None:
    await refused(api.list_page(CONFIG_MAPS, namespace=namespace, labels=selector), 400)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=red", ["red"]),
        ("metadata.name==red", ["red"]),
        ("metadata.name!=red", ["bare", "blue", "empty", "prefixed"]),
        ("metadata.name=none", []),
        ("metadata.name=red,metadata.name=blue", []),
    ],
)
async def test_field_selector_on_names(
    api: port.KubeApi, labelled: str, selector: str, expected: list[str]
) -> None:
    page = await api.list_page(CONFIG_MAPS, namespace=labelled, labels="set=s", fields=selector)
    assert names(page) == expected


async def test_field_selector_on_the_namespace(api: port.KubeApi, labelled: str) -> None:
    fields = f"metadata.namespace={labelled}"
    assert len((await api.list_page(CONFIG_MAPS, labels="set=s", fields=fields)).items) == len(LABELS)


@pytest.mark.parametrize("selector", ["spec.other=x", "data.key=value", "metadata.labels=x"])
async def test_fields_that_cannot_be_selected_are_400(
    api: port.KubeApi, namespace: str, selector: str
) -> None:
    await refused(api.list_page(CONFIG_MAPS, namespace=namespace, fields=selector), 400)


async def test_a_malformed_field_selector_is_400(api: port.KubeApi, namespace: str) -> None:
    await refused(api.list_page(CONFIG_MAPS, namespace=namespace, fields="metadata.name"), 400)


async def test_pods_by_node_and_phase(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("waiting"))
    assert names(await api.list_page(port.PODS, namespace=namespace, fields="spec.nodeName=")) == ["waiting"]
    assert names(await api.list_page(port.PODS, namespace=namespace, fields="spec.nodeName!=")) == []
    assert names(await api.list_page(port.PODS, namespace=namespace, fields="status.phase=Pending")) == [
        "waiting"
    ]
    assert names(await api.list_page(port.PODS, namespace=namespace, fields="status.phase!=Pending")) == []


async def test_pods_by_scheduler(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.PODS, namespace, pod("mine", schedulerName="mine"))
    await api.create(port.PODS, namespace, pod("usual"))
    page = await api.list_page(port.PODS, namespace=namespace, fields="spec.schedulerName=mine")
    assert names(page) == ["mine"]


async def test_deadline_jobs_by_queue(api: port.KubeApi, namespace: str) -> None:
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job("one", queue="a"))
    await api.create(port.DEADLINE_JOBS, namespace, deadline_job("two", queue="b"))
    page = await api.list_page(port.DEADLINE_JOBS, namespace=namespace, fields="spec.queue=b")
    assert names(page) == ["two"]

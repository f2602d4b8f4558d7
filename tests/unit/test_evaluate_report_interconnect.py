"""The interconnect in a report: how full its domains were, and how good the places of gangs in them."""

import functools

import pytest

from cases import reports
from cases.replays import HOUR, work
from lstqueue.evaluate import interconnects, mishaps
from lstqueue.evaluate.report import fabric, page, places, plot, series, single
from lstqueue.topology import domains

CLOS = "clos:2:2:2"
HOSTILE = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u202e"


@functools.cache
def _spread() -> series.Recorded:
    """Two nodes in each of two leaf groups: `b` needs one of them and has half of both."""
    works = [
        work("a", gpus=8, runs=2 * HOUR),
        work("c", gpus=8, runs=HOUR),
        work("b", gpus=16, runs=2 * HOUR),
    ]
    return reports.recorded(works, nodes=3, topology=CLOS, wishes=interconnects.Wishes(communication=300_000))


def _domains(seen: series.Recorded) -> domains.Domains:
    assert seen.record.domains is not None
    return seen.record.domains


def _texts(shown: plot.Plot, width: float) -> list[str]:
    return [text.text or "" for text in shown.draw(width).iter("text")]


def test_a_domain_is_as_full_as_its_nodes_were_over_all_of_the_replay() -> None:
    works = [work("all", gpus=32, runs=HOUR), work("half", gpus=16, at=2 * HOUR, runs=2 * HOUR)]
    seen = reports.recorded(works, nodes=4, topology=CLOS)
    rows = fabric.levels(seen, _domains(seen))
    assert [(row.name, len(row.names)) for row in rows] == [
        ("all", 1), ("block", 1), ("leafgroup", 2), ("node", 4),
    ]  # fmt: skip
    assert rows[0].used.tolist() == [0.5]
    assert sorted(rows[2].used.tolist()) == [0.25, 0.75]
    shown = fabric.fullness(seen, _domains(seen))
    assert "Gangs held 50.0% of 32 GPUs." in shown.said
    assert "the fullest was b0/l0 with 75.0%, the emptiest b0/l1 with 25.0%" in shown.said
    assert {"all nodes", "b0", "l0", "l1", "node-3", "75.0%"} <= set(_texts(shown, 1100.0))
    assert ("b0/l0", "leafgroup", "2", "16", "75.0%", "0%") in shown.rows


@pytest.mark.parametrize(
    ("width", "drawn", "left"),
    [(1100.0, {"block", "leafgroup"}, ["600 of level node"]),
     (350.0, {"block"}, ["75 of level leafgroup", "600 of level node"])],
)  # fmt: skip
def test_many_nodes_are_drawn_down_to_the_level_that_fits(
    width: float, drawn: set[str], left: list[str]
) -> None:
    seen = _many()
    shown = fabric.fullness(seen, _domains(seen))
    texts = _texts(shown, width)
    assert {"block", "leafgroup", "node"} & set(texts) == drawn
    assert [text for text in texts if "Too many" in text] == [
        f"Too many to draw here: {one}." for one in left
    ]
    boxes = shown.draw(width).findall("./g/rect")
    assert all(float(box.attrib["width"]) >= fabric.LEAST - 1 for box in boxes)
    assert "The table leaves out 600 of level node." in shown.note
    assert len(shown.rows) == 1 + 19 + 75


@functools.cache
def _many() -> series.Recorded:
    return reports.recorded([work("a", gpus=64)], nodes=600, topology="clos:8:4:2")


def test_nodes_in_no_domain_are_a_gap_and_count_for_the_whole() -> None:
    seen = reports.recorded([work("a", gpus=16)], nodes=2)
    found = domains.arrange(["rack"], {"node-0": ("r0",), "node-1": (None,)})
    rows = fabric.levels(seen, found)
    assert rows[0].used.tolist() == [1.0]
    assert rows[1].names == ("r0",)
    assert "Where a row has a gap" in fabric.fullness(seen, found).note


def test_what_was_out_of_service_is_said_of_its_domain() -> None:
    rates = mishaps.Rates(failures=3000.0, repair=HOUR)
    wear = mishaps.Wear(rates, 4, seed=1, since=work("a").submit)
    seen = reports.recorded([work("a", gpus=4, runs=20 * HOUR)], nodes=4, wear=wear, topology=CLOS)
    lost = sum(outage.gpus * (outage.until - outage.since) for outage in seen.record.outages)
    whole = fabric.levels(seen, _domains(seen))[0]
    assert whole.out[0] == pytest.approx(lost / (32 * seen.length * 1000))
    tips = [tip.text or "" for tip in fabric.fullness(seen, _domains(seen)).draw(1100.0).iter("title")]
    assert "out of service" in tips[0]


def test_gangs_are_measured_against_the_fewest_domains_that_could_hold_them() -> None:
    seen = _spread()
    found = _domains(seen)
    (stay,) = places.gangs(seen)
    groups = {name: index // 2 for index, name in enumerate(found.nodes)}
    apart = len({groups[node] for node, _ in stay.places}) - 1
    leaf, node = places.spreads(seen, found)
    assert (leaf.level, leaf.extra, node.extra) == ("leafgroup", (apart,), (0,))
    shown = places.spread(seen, found)
    share = "0%" if apart else "100%"
    assert shown.said.startswith(f"{share} of 1 placements of gangs with several pods")


def test_a_slower_place_is_counted_with_what_it_costs() -> None:
    seen = reports.recorded(
        [work("near", gpus=16), work("far", gpus=24, at=2 * HOUR)], nodes=4, topology=CLOS,
        wishes=interconnects.Wishes(communication=300_000),
    )  # fmt: skip
    shown = places.slower(seen, _domains(seen))
    assert (
        "1.15 times as long in their place as in the best, by mean; 95 of 100 at most 1.30 times"
        in shown.said
    )
    counts = {row[0]: row[1] for row in shown.rows if row[1] != "0"}
    assert counts == {"not slower": "1", "up to 1.5 ×": "1"}


def test_a_page_has_them_where_there_is_an_interconnect_and_as_far_as_there_is_something_to_say() -> None:
    plain = reports.recorded([work("a", gpus=16)], nodes=4)
    silent = reports.recorded([work("a", gpus=16)], nodes=4, topology=CLOS)
    single_ = reports.recorded([work("a", gpus=8)], nodes=4, topology=CLOS)
    keys = {"interconnect", "spread", "slower"}
    for seen, has in (
        (plain, set()), (single_, {"interconnect"}), (silent, {"interconnect", "spread"}), (_spread(), keys),
    ):  # fmt: skip
        made = single.content(reports.found(seen, nodes=4), seen, single.Asked())
        assert {shown.key for shown in made.plots} & keys == has
    assert "--communication" in places.spread(silent, _domains(silent)).note


def test_names_of_domains_and_levels_are_only_ever_text() -> None:
    seen = reports.recorded([work("a", gpus=16)], nodes=2)
    seen.record.domains = domains.arrange([HOSTILE], {"node-0": (HOSTILE,), "node-1": ("other",)})
    made = reports.Page(page.html(single.content(reports.found(seen, nodes=2), seen, single.Asked())))
    assert not {tag for tag, _ in made.elements} & {"script", "img"}
    assert not [name for _, attributes in made.elements for name in attributes if name.startswith("on")]
    assert "\u202e" not in made.source
    assert "interconnect" in made.ids
    for drawing in made.drawings:
        assert len(drawing.attrib["aria-label"]) > 20
    assert any("<script>alert(1)" in text for _, text in made.texts)

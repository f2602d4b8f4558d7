"""Patterns of HyperNodes: those that people write are taken, and those that Python tries for long are not."""

from __future__ import annotations

import time

import pytest

from lstqueue.topology.found import TopologyError
from lstqueue.topology.readers import fields, patterns

LONG = "a" * fields.LONGEST
FIELD = "HyperNode s0: spec.members[0].selector.regexMatch.pattern"


def refusal(text: str) -> str:
    with pytest.raises(TopologyError) as caught:
        patterns.read(text, FIELD)
    return str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "a*a*a*a*a*a*a*a*b",
        ".*-.*-.*-.*x",
        "[a-z0-9.-]*[a-z0-9.-]*[a-z0-9.-]*[a-z0-9.-]*!",
        "a?" * 40 + "a" * 40 + "c",
        "a{1,9}" * 30 + "c",
        "(a|aa)" * 40 + "c",
        ".*.*c",
        "^.*|.*.*c",
        "(?:){99999999}",
    ],
)
def test_many_repeats_or_choices_in_a_row_are_refused(text: str) -> None:
    said = refusal(text)
    assert said.startswith(f"{FIELD}: {text!a} could take long")
    assert said.endswith("begin it with ^, repeat or choose less, or name the members with exactMatch")


@pytest.mark.parametrize(
    "text", ["^(a+)+$", "((a*)a)*b", "((a|aa)b)*", "(?:a?){60}a{60}b", "(?P<n>a)(?P=n)", "(?=(a+a+c))"]
)
def test_a_repeat_of_a_repeat_is_refused(text: str) -> None:
    assert refusal(text).endswith("name the members with exactMatch")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("^node-[0-9]+-rack-[0-9]+$", "node-12-rack-3"),
        ("^(dc1|dc2)-rack[0-9]+-node[0-9]+$", "dc2-rack7-node11"),
        ("node-[0-9]+", "node-4"),
        ("^.*-rack1-.*", "eu-rack1-n4"),
        ("gpu-[0-9]{1,3}", "gpu-007"),
        (r"^(?P<row>[a-z]{2})\.[^.*]+$", "ab.cd"),
        ("a{|x(y)?", "a{"),
    ],
)
def test_what_people_write_is_taken(text: str, name: str) -> None:
    assert patterns.read(text, FIELD).search(name)


@pytest.mark.parametrize("text", ["(a){3,}(a|aa)[cd]", "(a)*" + "." * 26 + "(c|d)", "^(?:a)*?(?:a)??a*?ac"])
def test_the_slowest_that_are_taken_end_soon_on_the_longest_name(text: str) -> None:
    pattern = patterns.read(text, FIELD)
    began = time.process_time()
    assert not pattern.search(LONG)
    assert (
        time.process_time() - began < 0.5
    )  # 45 ms at most were measured; this leaves room for a busy machine


@pytest.mark.parametrize("text", [None, 3, "", "a" * 257])
def test_a_pattern_is_text_of_some_length(text: object) -> None:
    with pytest.raises(TopologyError, match="write one of up to 256 characters"):
        patterns.read(text, FIELD)
    assert "is no pattern (" in refusal("(a")

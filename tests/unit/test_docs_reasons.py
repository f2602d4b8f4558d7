"""docs/reasons.md has every code and reason that a user may read, and none that nobody writes."""

import ast
import pathlib
import re

from lstqueue.engine import model
from lstqueue.operator import ledger

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
WORD = re.compile("[A-Z][a-z]+[A-Za-z]*|TTL[A-Za-z]+")
ELSEWHERE = {
    *("ConfigMap", "CronJob", "DeadlineJob", "Event", "Job", "Namespace", "Node", "Pod", "ResourceQuota"),
    *("BestEffort", "Cancel", "Continue", "Demote", "Leader", "Never", "Queue", "QueueDefault", "Reject"),
    *("Clock", "ClockSkew", "Defect", "HyperNode", "Interconnect", "PyTorchJob"),
    *("Failed", "NoExecute", "Normal", "Ready", "Running", "SchedulingGated", "True", "User", "Warning"),
}
"""Words that are no reasons: kinds, values of fields, words of pods, Events and (failed writes) metrics."""


def written() -> set[str]:
    """Every word in the operator's code, and the engine's codes."""
    found = {code.value for code in model.Code} | {why.value for why in model.Why}
    for path in (ROOT / "lstqueue" / "operator").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and WORD.fullmatch(node.value):
                found.add(node.value)
    return found - ELSEWHERE


def rows(page: str) -> list[str]:
    """The first cell of every row of a page's tables."""
    return [found for found in re.findall(r"^\| (\w+) \|", page, flags=re.MULTILINE) if WORD.fullmatch(found)]


def test_every_reason_is_explained() -> None:
    explained = set(re.findall(r"\w+", PAGE))
    assert sorted(written() - explained) == [], (
        "give them rows in docs/reasons.md, or put them into ELSEWHERE"
    )
    told_in_a_sentence = {"NameLeaving", "Other"}
    assert sorted(written() - told_in_a_sentence - set(rows(PAGE))) == []


def test_no_reason_is_explained_that_nobody_writes_or_twice() -> None:
    listed = rows(PAGE)
    assert sorted(set(listed) - written()) == []
    assert sorted({word for word in listed if listed.count(word) > 1}) == []


def test_the_list_of_suspensions_in_the_concepts_is_whole() -> None:
    concepts = (ROOT / "docs" / "concepts.md").read_text(encoding="utf-8")
    table = concepts.split("`status.suspension.reason` is one of these")[1].split("##")[0]
    stops = PAGE.split("## Why it had to stop")[1].split("##")[0]
    assert sorted(rows(table)) == sorted([*rows(stops), ledger.INACTIVE])

"""What people get wrong in the labels, annotations and templates of their own Jobs, and what they are told.

An Event on the Job itself tells them, since that is the object they look at. An annotation that cannot be
used is left out, and the Job is queued without it: who misspells a deadline still wants their Job to run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cases.bad_input import EMOJI, PAST, RTL, UNSUPPORTED

Object = dict[str, Any]

_AT = "metadata.annotations[lstqueue.dev/{}]"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A Job with our label; keywords of `existing.body`, and what an Event on it says.

    `phase` is where its DeadlineJob ends up, "" for a Job that gets none.
    """

    given: Object
    event: str
    says: tuple[str, ...]
    phase: str = "Succeeded"
    queue: Object = field(default_factory=dict)
    name: str = "train"


def wrong(annotation: str, value: str, *says: str) -> Labelled:
    """An annotation that cannot be used."""
    return Labelled({"said": {annotation: value}}, "BadAnnotations", (_AT.format(annotation), *says))


ANNOTATIONS: Mapping[str, Labelled] = {
    "a deadline in words": wrong("deadline", "tomorrow", "'tomorrow'", "RFC 3339"),
    "an empty deadline": wrong("deadline", "", "RFC 3339"),
    "a deadline in the year 10000": wrong("deadline", "10000-01-01T00:00:00Z", "RFC 3339"),
    "a deadline on the last day of 9999": wrong("deadline", "9999-12-31T00:00:00Z", "before 9999-01-01"),
    "a duration in words": wrong("deadline-in", "soon", "'soon'", '"90s"'),
    "a negative duration": wrong("deadline-in", "-1h", "'-1h'", '"90s"'),
    "a duration of zero": wrong("estimated-duration", "0s", "zero"),
    "an empty duration": wrong("estimated-duration", "", '"90s"'),
    "a duration without end": wrong("max-run-time", "9" * 100 + "d", '"90s"'),
    "a time of day without a zone": wrong("deadline-at", "06:00", '"06:00 Europe/Berlin"'),
    "a time of day that is none": wrong("deadline-at", "25:00 UTC", "'25:00'", '"06:00"'),
    "a zone that nobody knows": wrong("deadline-at", "06:00 Mars/Olympus", "Mars/Olympus", "IANA"),
    "a negative value": wrong("value", "-5", "'-5'", "1 to 1000000"),
    "a value beyond all bounds": wrong("value", "9" * 30, "1 to 1000000"),
    "a checkpoint interval in words": wrong("checkpoint-interval", "often", '"90s"'),
    "a word for yes": wrong("preemptible", "yes", "'yes'", '"true" or "false"'),
    "a sweep without a number": wrong("sweep", "lr-search", "3 of lr-search"),
    "a sweep of none": wrong("sweep", "0 of lr-search", "3 of lr-search"),
    "a word that is not a choice": wrong("on-missed", "cancel", "Demote, Continue or Cancel"),
    "a text that reads backwards": wrong("deadline-in", RTL, r"\u202e", '"90s"'),
    "an emoji": wrong("value", EMOJI, r"\U0001f680"),
    "a line of a quarter of a megabyte": wrong("deadline", "x" * 250_000, "250000 characters", "at most 253"),
    "a word that would adopt": wrong("adopt", "maybe", "'maybe'", '"true" or "false"'),
    "two deadlines": Labelled(
        {"said": {"deadline": "2030-01-01T00:00:00Z", "deadline-in": "1h"}},
        "BadAnnotations",
        (_AT.format("deadline-in"), "keep one"),
    ),
    "a misspelt annotation": Labelled(
        {"said": {"estimated-durration": "1h"}},
        "UnknownAnnotation",
        (_AT.format("estimated-durration"), "write lstqueue.dev/estimated-duration if you meant that"),
    ),
    "an annotation that nobody reads": Labelled(
        {"said": {"color": "blue"}}, "UnknownAnnotation", (_AT.format("color"), "remove it")
    ),
}

PLACES: Mapping[str, Labelled] = {
    "a queue that does not exist": Labelled(
        {"queue": "nowhere"}, "QueueNotFound", ('"nowhere"', "create that GPUQueue"), "Pending"
    ),
    "no queue and no default": Labelled(
        {"queue": ""}, "QueueNotSet", ("lstqueue.dev/default-queue",), "Pending"
    ),
    "a queue in capitals": Labelled(
        {"queue": "Research_1"},
        "BadAnnotations",
        ("metadata.labels[lstqueue.dev/queue]", "'Research_1'", "lower-case"),
        "",
    ),
    "a namespace that the queue does not take": Labelled(
        {},
        "NamespaceNotSelected",
        ("spec.namespaceSelector",),
        "Pending",
        queue={"namespaceSelector": {"matchLabels": {"team": "vision"}}},
    ),
    "a gang for which there are too few nodes": Labelled(
        {"parallelism": 5, "completions": 5}, "NoMatchingNodes", ("5 pods", "ask for less"), "Pending"
    ),
    "a selector that no node has": Labelled(
        {"pod": {"nodeSelector": {"zone": "moon"}}},
        "NoMatchingNodes",
        ("node selector",),
        "Pending",
    ),
    "a class whose pods preempt": Labelled(
        {"pod": {"priorityClassName": "pushy"}},
        "PriorityClassNotAllowed",
        ("pushy", "spec.priorityClasses"),
        "Pending",
    ),
    "a class that is not there": Labelled(
        {"pod": {"priorityClassName": "missing"}}, "Forbidden", ("PriorityClass", "missing"), "Pending"
    ),
    "no parallelism": Labelled(
        {"parallelism": 0}, "NoParallelism", ("spec.parallelism", "raise it"), "Pending"
    ),
    "ten thousand pods": Labelled(
        {"parallelism": 10_000, "completions": 10_000, "gpus": 0}, "TooManyPods", ("10000", "4096"), "Pending"
    ),
    "a past deadline that it should not outlive": Labelled(
        {"said": {"deadline": PAST, "on-missed": "Cancel"}},
        "DeadlineMissed",
        ("2001-01-01", "on-missed"),
        "Failed",
    ),
    "a deadline that should reject": Labelled(
        {"said": {"deadline-in": "1m", "estimated-duration": "9h", "on-infeasible": "Reject"}},
        "Infeasible",
        ("deadline",),
        "Rejected",
    ),
    **{
        name: Labelled({"pod": spec}, "UnsupportedConstraint", ("Job train", where, "remove it"), "Rejected")
        for name, (spec, where) in UNSUPPORTED.items()
    },
}

HARMLESS: Mapping[str, Labelled] = {
    "no requests at all": Labelled({"gpus": 0}, "Admitted", ("queue research",)),
    "a past deadline": Labelled({"said": {"deadline": PAST}}, "DeadlineMissed", ("2001-01-01",)),
    "a name that begins with a digit": Labelled({}, "Admitted", ("queue research",), name="4ever"),
    "a name with points": Labelled({"indexed": False}, "Admitted", ("queue research",), name="a.b-c.d"),
    "the longest name of an indexed Job": Labelled({}, "Admitted", ("queue research",), name="n" * 61),
    "the longest name of any Job": Labelled(
        {"indexed": False}, "Admitted", ("queue research",), name="n" * 63
    ),
}

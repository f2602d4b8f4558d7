"""The policies one can compare: each is a configuration of the one engine, a queue's settings included.

A policy is listed only if switches of the engine express it as it is meant; what would need other code is not
here. The three without gangs differ in the world as well (`podwise`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from lstqueue.engine import model, switches
from lstqueue.evaluate import podwise, world
from lstqueue.topology import rules


@dataclass(frozen=True, slots=True)
class Policy:
    """What it is called and is, what it sets in `model.Config`, and what in the queue.

    With `pods` the world is one without gangs. One that is `foreknowing` is told whom to give up
    (`foreknowledge`).
    """

    name: str
    about: str
    config: dict[str, Any] = field(default_factory=dict)
    queue: dict[str, Any] = field(default_factory=dict)
    pods: podwise.Rules | None = None
    foreknowing: bool = False

    @property
    def promises(self) -> bool:
        """Whether deadlines are promised."""
        return self.configured(model.Config()).promising

    def configured(self, config: model.Config) -> model.Config:
        """Return a configuration with what the policy sets; as in a queue, no promises unless it has them."""
        return replace(config, **{"promising": False, **self.config})

    def world(self, *arguments: Any, **more: Any) -> world.World:
        """Make the world that the policy acts in, with the arguments of `world.World`."""
        if self.pods is None:
            return world.World(*arguments, **more)
        return podwise.PodWorld(*arguments, rules=self.pods, **more)

    def queued(self, queue: model.Queue) -> model.Queue:
        """Return a queue with what the policy sets."""
        return replace(queue, **self.queue)


_NEVER = {"preemption": model.Preemption.NEVER}
_UNGUARDED = {"min_run": 0, "cap": 1 << 30}
"""A queue that protects nobody from suspensions."""
_BARE = {"shedding": False, "sharing": False, "reserve_most": 0}
"""Without the rules that are lst's own: shedding, a share for best-effort work, and room kept for heads."""
_URGENT = 2 * model.MINUTE
"""Slack at which a job is urgent for `edzl`: zero, seen by passes that are up to a minute apart."""


def _plain(order: model.Order, **changed: Any) -> dict[str, Any]:
    """An order alone; `changed` are switches."""
    return {"order": order, **_BARE, "switches": switches.Switches(**changed)}


def _by_rank(order: model.Order, **changed: Any) -> dict[str, Any]:
    """The same, with whoever stands behind suspended for whoever stands before."""
    return _plain(order, **{"preempts": switches.Preempts.RANK, **changed})


def _placing(rule: rules.Rule) -> dict[str, Any]:
    """Another placement, in which nobody waits for a better domain."""
    return {"switches": switches.Switches(placing=rule), "relaxes": False}


_PODS = _plain(model.Order.FIFO, strict=False) | {"forecast_depth": 0}
"""Pods by importance and submission, each where it fits; nobody forecasts for a pod."""
_SLACK_ALONE = {"overhead_share": 0.0, "quantum": 1}

ALL = (
    Policy("lst", "least slack first with no-harm preemption and shedding: what the operator does"),
    Policy("lst-no-shed", "lst that gives nobody up in an overload", config={"shedding": False}),
    Policy(
        "lst-clairvoyant",
        "lst that knows the whole trace and gives up, before it is submitted, what would be too much",
        config={"shedding": False},
        foreknowing=True,
    ),
    Policy("lst-no-preempt", "lst that has nobody suspended", queue=_NEVER),
    Policy("lst-promises", "lst that promises deadlines and keeps them", config={"promising": True}),
    Policy("lst-no-reserve", "lst that keeps no room for those that wait", config={"reserve_most": 0}),
    Policy("lst-no-share", "lst without a share for best-effort work", config={"sharing": False}),
    Policy(
        "lst-no-demotion",
        "lst whose late jobs keep their place",
        config={"switches": switches.Switches(demotes_late=False)},
    ),
    Policy(
        "lst-plain",
        "lst without preemption, shedding, reservations and a best-effort share",
        config=_BARE,
        queue=_NEVER,
    ),
    Policy("lst-tightest", "lst that places on the tightest nodes", config=_placing(rules.Rule.TIGHTEST)),
    Policy("lst-most-free", "lst that places on the freest nodes", config=_placing(rules.Rule.MOST_FREE)),
    Policy("lst-random", "lst that places anywhere", config=_placing(rules.Rule.RANDOM)),
    Policy(
        "naive-lst",
        "least slack first anew in every pass: whoever has less slack suspends, late jobs first of all",
        config=_by_rank(model.Order.LST, demotes_late=False) | _SLACK_ALONE,
        queue=_UNGUARDED,
    ),
    Policy(
        "edf",
        "earliest deadline first, late jobs last, with the same preemption and shedding as lst",
        config={"order": model.Order.EDF},
    ),
    Policy(
        "edf-plain",
        "earliest deadline first without preemption; late jobs keep their place",
        config=_plain(model.Order.EDF, demotes_late=False),
        queue=_NEVER,
    ),
    Policy(
        "edf-late-drop",
        "earliest deadline first without preemption, late jobs last",
        config=_plain(model.Order.EDF),
        queue=_NEVER,
    ),
    Policy(
        "edf-preempt",
        "earliest deadline first, whoever is due earlier suspends; late jobs keep their place",
        config=_by_rank(model.Order.EDF, demotes_late=False),
        queue=_UNGUARDED,
    ),
    Policy(
        "edf-preempt-late-drop",
        "earliest deadline first, whoever is due earlier suspends; late jobs last",
        config=_by_rank(model.Order.EDF),
        queue=_UNGUARDED,
    ),
    Policy(
        "edzl",
        "edf-preempt-late-drop in which a job without slack goes before all others",
        config=_by_rank(model.Order.EDF, urgent=_URGENT),
        queue=_UNGUARDED,
    ),
    Policy(
        "fifo",
        "strict first come first served: nobody overtakes, nobody is suspended",
        config=_plain(model.Order.FIFO),
        queue=_NEVER,
    ),
    Policy(
        "fifo-skip",
        "first come first served, and whoever fits passes those that do not",
        config=_plain(model.Order.FIFO, strict=False),
        queue=_NEVER,
    ),
    Policy(
        "easy",
        "fifo in which others pass where that does not delay the first that waits, by its estimate",
        config=_plain(model.Order.FIFO, strict=False, backfill=switches.Backfill.EASY),
        queue=_NEVER,
    ),
    Policy(
        "conservative",
        "fifo in which others pass where that delays nobody who waits, by their estimates",
        config=_plain(model.Order.FIFO, strict=False, backfill=switches.Backfill.CONSERVATIVE),
        queue=_NEVER,
    ),
    Policy(
        "slack-backfill",
        "fifo in which others pass where everybody before them can still start within its slack",
        config=_plain(model.Order.FIFO, strict=False, backfill=switches.Backfill.SLACK),
        queue=_NEVER,
    ),
    Policy(
        "sjf",
        "shortest job first by estimate, without preemption; whoever fits passes those that do not",
        config=_plain(model.Order.SJF),
        queue=_NEVER,
    ),
    Policy(
        "srtf",
        "shortest remaining time first: whoever has less left suspends",
        config=_by_rank(model.Order.SJF),
        queue=_UNGUARDED,
    ),
    Policy(
        "priority",
        "importance, then first come first served; any job of less importance is suspended",
        config=_by_rank(model.Order.FIFO, strict=False, preempts=switches.Preempts.TIER),
        queue=_UNGUARDED,
    ),
    Policy(
        "las",
        "least attained service first, as Tiresias has it with two queues; no estimates, no deadlines",
        config=_by_rank(model.Order.SERVICE),
        queue=_UNGUARDED,
    ),
    Policy(
        "kube-scheduler",
        "the default scheduler: pods one by one, first come first served, and gangs wait for their last pod",
        config=_PODS,
        queue=_NEVER,
        pods=podwise.Rules(),
    ),
    Policy(
        "kueue-strict-fifo",
        "Kueue without topology: jobs by a count of GPUs, nobody passes; pods one by one, 30 min to be ready",
        config=_PODS,
        queue=_NEVER,
        pods=podwise.Rules(podwise.Gate(strict=True)),
    ),
    Policy(
        "kueue-best-effort-fifo",
        "the same, and whoever the count lets in passes those whom it does not",
        config=_PODS,
        queue=_NEVER,
        pods=podwise.Rules(podwise.Gate(strict=False)),
    ),
)
_BY_NAME = {policy.name: policy for policy in ALL}


class PolicyError(ValueError):
    """No such policy; the message lists them."""


def named(name: str) -> Policy:
    """Return a policy by its name, `NAME` or `NAME:FIELD=VALUE,...` with other figures in `model.Config`.

    So any rule of a policy can be left out, or weighed, by the field that the engine has for it.

    Raises:
        PolicyError: There is none, or no such field or value.
    """
    base, colon, changes = name.partition(":")
    if base not in _BY_NAME:
        raise PolicyError(f"{name!r} is no policy; it must be one of {', '.join(_BY_NAME)}")
    policy = _BY_NAME[base]
    if not colon:
        return policy
    set_ = dict(_change(name, text) for text in changes.split(","))
    made = replace(policy, name=name, about=f"{policy.about}; {changes}", config={**policy.config, **set_})
    try:
        made.configured(model.Config())
    except ValueError as error:
        raise PolicyError(f"{name!r}: {error}") from error
    return made


def _change(name: str, text: str) -> tuple[str, Any]:
    """Read FIELD=VALUE."""
    key, _, value = (part.strip() for part in text.partition("="))
    if key not in _FIGURES:
        raise PolicyError(f"{name!r} sets {key!r}, which is no figure; they are {', '.join(_FIGURES)}")
    read, wanted = _READ[type(getattr(model.Config(), key))]
    try:
        return key, read(value)
    except (KeyError, ValueError) as error:
        raise PolicyError(f"{name!r} sets {key} to {value!r}; it must be {wanted}") from error


_READ: Mapping[type, tuple[Callable[[str], Any], str]] = {
    bool: ({"true": True, "false": False}.__getitem__, "true or false"),
    int: (int, "a whole number, times in ms"),
    float: (float, "a number"),
}
_FIGURES = [field.name for field in fields(model.Config) if field.name not in ("order", "switches")]

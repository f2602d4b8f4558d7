"""What an operator may be told: every figure with its unit and reason. The engine's own are in its Config."""

from __future__ import annotations

from dataclasses import dataclass, field

from lstqueue.engine import model


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds of the event loop's clock unless the name says otherwise.

    `quiet` and `at_most` batch the bell: a pass starts after that much silence, or after that much noise, and
    `pass_every` after the one before at the soonest.
    `relist_interval` is how often GPUQueues are listed again, because the shell's watch can lose deletions.
    `restate_interval_ms` is how old the figures in a job's reason to wait may get before it is told anew,
    `recovery_timeout_ms` how long a running gang may be incomplete. `retry_first` and `retry_most` bound the
    wait after a write that failed. Where `blame_nodes` of an innermost domain
    failed within an hour all of it is suspect; three, so that two machines in a chassis are not it,
    and 0 for never.
    `look_at_pods` is how often it is looked for pods that stay when they should not. Pods of fixed names are
    removed from nodes whose heartbeat has stopped for `force_after`, unless `force_delete` is off, and with
    `end_left_pods` those that a job has left running are ended `left_for` after its end.
    """

    quiet: float = 0.05
    at_most: float = 1.0
    pass_every: float = 0.0
    watch_seconds: int = 300
    relist_interval: float = 300.0
    inactivity_timeout: float = 70.0
    page_size: int = 500
    writes_per_second: float = 50.0
    write_burst: int = 100
    in_flight: int = 16
    events_per_second: float = 5.0
    event_burst: int = 50
    retry_first: float = 1.0
    retry_most: float = 60.0
    intake_retry: float = 60.0
    queue_status_interval: float = 10.0
    restate_interval_ms: int = model.HOUR
    bind_timeout_ms: int = 2 * model.MINUTE
    gang_ready_timeout_ms: int = 30 * model.MINUTE
    recovery_timeout_ms: int = 10 * model.MINUTE
    blame_nodes: int = 3
    look_at_pods: float = 30.0
    force_delete: bool = True
    force_after: float = 300.0
    end_left_pods: bool = False
    left_for: float = 60.0
    engine: model.Config = field(default_factory=model.Config)

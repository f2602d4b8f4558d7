"""What `kubectl get` shows of pods, Jobs and CronJobs: one word for the state of many containers.

The words are those of a real server, because people and scripts know them; the order in which one wins over
another is documented in the functions.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import times
from lstqueue.embedded import ages
from lstqueue.kube import port

Cell = str | int | bool | None
NONE = "<none>"

_RESTARTABLE = "Always"


def pod_cells(pod: port.Object, now_ms: int) -> list[Cell]:
    """Name, ready, status, restarts, age; address, node, nominated node, readiness gates."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    addresses = status.get("podIPs") or [{"ip": status.get("podIP")}]
    return [
        pod["metadata"]["name"],
        _ready(spec, status),
        pod_word(pod),
        _restarts(status, now_ms),
        ages.since(pod["metadata"].get("creationTimestamp"), now_ms),
        addresses[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def _ready(spec: dict[str, Any], status: dict[str, Any]) -> str:
    sidecars = {item["name"] for item in spec.get("initContainers") or () if _restarts_always(item)}
    total = len(spec.get("containers") or ()) + len(sidecars)
    running = sum(
        bool(item.get("ready")) and "running" in item.get("state", {})
        for item in status.get("containerStatuses") or ()
    )
    running += sum(
        bool(item.get("ready")) and item["name"] in sidecars
        for item in status.get("initContainerStatuses") or ()
    )
    return f"{running}/{total}"


def _restarts_always(container: dict[str, Any]) -> bool:
    return bool(container.get("restartPolicy") == _RESTARTABLE)


def _restarts(status: dict[str, Any], now_ms: int) -> str:
    count, last = 0, ""
    for item in status.get("containerStatuses") or ():
        count += item.get("restartCount", 0)
        ended = item.get("lastState", {}).get("terminated", {}).get("finishedAt") or ""
        last = max(last, ended)
    return f"{count} ({ages.since(last, now_ms)} ago)" if count and last else str(count)


def pod_word(pod: port.Object) -> str:
    """The STATUS of a pod.

    Deletion wins over what an init container says, that over what a container says, that over the phase.
    """
    spec, status = pod.get("spec", {}), pod.get("status", {})
    phase = status.get("phase") or "Unknown"
    word = status.get("reason") or phase
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            word = "SchedulingGated"
    word = _init_word(spec, status) or _container_word(status, word)
    if "deletionTimestamp" in pod["metadata"] and phase not in ("Succeeded", "Failed"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return word


def _init_word(spec: dict[str, Any], status: dict[str, Any]) -> str:
    """What the first init container that has not done its part is doing; empty when all have."""
    containers = spec.get("initContainers") or ()
    always = {item["name"] for item in containers if _restarts_always(item)}
    for number, item in enumerate(status.get("initContainerStatuses") or ()):
        state = item.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting", {})
        if ended is not None and not ended.get("exitCode"):
            continue
        if item["name"] in always and item.get("started"):
            continue
        if ended is not None:
            return "Init:" + _end(ended)
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{number}/{len(containers)}"
    return ""


def _container_word(status: dict[str, Any], word: str) -> str:
    """The first container that waits or has ended names the state of the pod."""
    runs = False
    for item in reversed(status.get("containerStatuses") or ()):
        state = item.get("state", {})
        if (state.get("waiting") or {}).get("reason"):
            word = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            word = _end(state["terminated"])
        elif "running" in state and item.get("ready"):
            runs = True
    if word == "Completed" and runs:
        return "Running" if has_condition(status, "Ready") else "NotReady"
    return word


def _end(ended: dict[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _gates(spec: dict[str, Any], status: dict[str, Any]) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    return f"{sum(has_condition(status, gate['conditionType']) for gate in gates)}/{len(gates)}"


def has_condition(status: dict[str, Any], name: str) -> bool:
    """Whether a condition is True."""
    return any(item["type"] == name and item["status"] == "True" for item in status.get("conditions") or ())


_JOB_ENDS = ("Complete", "Failed")
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def job_cells(job: port.Object, now_ms: int) -> list[Cell]:
    """Name, status, completions, duration, age; containers, images, selector."""
    spec, status = job.get("spec", {}), job.get("status", {})
    return [
        job["metadata"]["name"],
        _job_word(job, status),
        _completions(spec, status.get("succeeded", 0)),
        _duration(status, now_ms),
        ages.since(job["metadata"].get("creationTimestamp"), now_ms),
        *_containers(spec),
        labels((spec.get("selector") or {}).get("matchLabels")),
    ]


def _containers(spec: dict[str, Any]) -> list[Cell]:
    """The names and the images of a template's containers."""
    containers = spec.get("template", {}).get("spec", {}).get("containers") or ()
    return [",".join(item.get(key, "") for item in containers) for key in ("name", "image")]


def cron_job_cells(cron: port.Object, now_ms: int) -> list[Cell]:
    """Name, schedule, zone, suspend, active, last schedule, age; containers, images, selector."""
    spec, status = cron.get("spec", {}), cron.get("status", {})
    last, made = status.get("lastScheduleTime"), spec.get("jobTemplate", {}).get("spec", {})
    return [
        cron["metadata"]["name"],
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        str(bool(spec.get("suspend"))),
        len(status.get("active") or ()),
        ages.since(last, now_ms) if last else NONE,
        ages.since(cron["metadata"].get("creationTimestamp"), now_ms),
        *_containers(made),
        labels((made.get("selector") or {}).get("matchLabels")),
    ]


def labels(chosen: dict[str, str] | None) -> str:
    """Labels as a selector: `a=1,b=2`."""
    return ",".join(f"{key}={value}" for key, value in sorted((chosen or {}).items())) or NONE


def _job_word(job: port.Object, status: dict[str, Any]) -> str:
    for name in _JOB_ENDS:
        if has_condition(status, name):
            return name
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for name in _JOB_STATES:
        if has_condition(status, name):
            return name
    return "Running"


def _completions(spec: dict[str, Any], done: int) -> str:
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(status: dict[str, Any], now_ms: int) -> str:
    if not status.get("startTime"):
        return ""
    end = times.parse(status["completionTime"]) if status.get("completionTime") else now_ms
    return ages.human(end - times.parse(status["startTime"]))

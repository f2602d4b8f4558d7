"""What LimitRanges and RuntimeClasses do to a new pod: fill in resources, refuse what is out of bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lstqueue.api import errors, quantities
from lstqueue.embedded import failures, resources, rules
from lstqueue.embedded.controllers import pods
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port

_NOTE = "kubernetes.io/limit-ranger"
_TYPES = ("Container", "PersistentVolumeClaim", "Pod")
_BOUNDS = ("max", "min", "default", "defaultRequest")
_KINDS_OF_CONTAINER = (("containers", "container"), ("initContainers", "init container"))


# What a new pod gets


def fill_in(new: port.Object, reader: rules.Reader) -> None:
    """Give a new pod the default resources of its namespace's LimitRanges, in place."""
    notes = []
    for limits in _limit_ranges(new, reader):
        for item in limits:
            if item["type"] != "Container":
                continue
            for key, what in _KINDS_OF_CONTAINER:
                for container in new["spec"].get(key) or ():
                    notes += _fill_container(container, item, what)
    if notes:
        annotations = new["metadata"].setdefault("annotations", {})
        annotations[_NOTE] = "LimitRanger plugin set: " + "; ".join(notes)


def _fill_container(container: dict[str, Any], item: Mapping[str, Any], what: str) -> list[str]:
    has: dict[str, Any] = container.setdefault("resources", {})
    notes = []
    for part, source, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
        added = {
            name: value
            for name, value in (item.get(source) or {}).items()
            if name not in (has.get(part) or {})
        }
        if added:
            has[part] = {**(has.get(part) or {}), **added}
            notes.append(f"{', '.join(sorted(added))} {word} for {what} {container.get('name')}")
    return notes


def add_overhead(new: port.Object, reader: rules.Reader) -> None:
    """Give a new pod the overhead and the placement of its RuntimeClass, in place.

    Raises:
        port.ForbiddenError: the class does not exist, or the pod contradicts it.
    """
    meta, spec = new["metadata"], new["spec"]
    name = spec.get("runtimeClassName")
    if not name:
        return
    found = reader.find(resources.RUNTIME_CLASSES, None, name)
    if found is None:
        why = f'pod rejected: RuntimeClass "{name}" not found'
        raise failures.forbidden(port.PODS, meta["name"], why)
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead and spec.setdefault("overhead", dict(overhead)) != overhead:
        why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        raise failures.forbidden(port.PODS, meta["name"], why)
    placement = found.get("scheduling") or {}
    for key, value in (placement.get("nodeSelector") or {}).items():
        if spec.setdefault("nodeSelector", {}).setdefault(key, value) != value:
            why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise failures.forbidden(port.PODS, meta["name"], why)
    given = spec.get("tolerations") or []
    added = [item for item in placement.get("tolerations") or () if item not in given]
    if added:
        spec["tolerations"] = [*given, *added]


# What a new pod may ask for


def check(new: port.Object, reader: rules.Reader) -> None:
    """Refuse a new pod that is out of the bounds of its namespace's LimitRanges.

    Raises:
        port.ForbiddenError: with every bound that it breaks.
    """
    found = [problem for limits in _limit_ranges(new, reader) for problem in _problems(new["spec"], limits)]
    if found:
        text = ", ".join(found) if len(found) == 1 else f"[{', '.join(found)}]"
        raise failures.forbidden(port.PODS, new["metadata"]["name"], text)


def _limit_ranges(new: port.Object, reader: rules.Reader) -> list[list[Any]]:
    namespace = new["metadata"]["namespace"]
    return [
        item["spec"].get("limits") or []
        for item in reader.list(resources.LIMIT_RANGES)
        if item["metadata"]["namespace"] == namespace
    ]


def _problems(spec: Mapping[str, Any], limits: list[Any]) -> Iterator[str]:
    for item in limits:
        if item["type"] == "Container":
            for key, _ in _KINDS_OF_CONTAINER:
                for container in spec.get(key) or ():
                    asked = pods.of_container(container, ("requests",))
                    yield from _out_of_bounds(item, asked, pods.of_container(container, ("limits",)))
        elif item["type"] == "Pod":
            yield from _out_of_bounds(item, pods.totals(spec, ("requests",)), pods.totals(spec, ("limits",)))


def _out_of_bounds(item: Mapping[str, Any], asked: pods.Amounts, capped: pods.Amounts) -> Iterator[str]:
    for bound, word, missing, amounts in (
        ("min", "minimum", "request", asked),
        ("max", "maximum", "limit", capped),
    ):
        for name, value in (item.get(bound) or {}).items():
            edge = quantities.parse(name, value)
            text = f"{word} {name} usage per {item['type']} is {quantities.format(name, edge)}"
            if name not in amounts:
                yield f"{text}.  No {missing} is specified"
                continue
            order = (
                (("request", asked), ("limit", capped))
                if bound == "min"
                else (("limit", capped), ("request", asked))
            )
            for what, given in order:
                amount = given.get(name)
                if amount is not None and (amount < edge if bound == "min" else amount > edge):
                    yield f"{text}, but {what} is {quantities.format(name, amount)}"
                    break


# The objects themselves


def _default_limits(new: port.Object, _old: port.Object | None) -> None:
    for item in (new.get("spec") or {}).get("limits") or ():
        if item.get("type") == "Container":
            default = {**(item.get("max") or {}), **(item.get("default") or {})}
            request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
            for key, value in (("default", default), ("defaultRequest", request)):
                if value:
                    item[key] = value


def _check_limits(new: port.Object, _old: port.Object | None) -> list[Violation]:
    found: list[Violation] = []
    seen: set[str] = set()
    for index, item in enumerate((new.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type") or ""
        if kind not in _TYPES:
            found.append(failures.unsupported(f"{path}.type", kind, _TYPES))
        if kind in seen:
            found.append(Violation(f"{path}.type", f'Duplicate value: "{kind}"'))
        seen.add(kind)
        if item.get("maxLimitRequestRatio"):
            # Nobody here divides; a bound that is silently not kept would be worse than none.
            detail = "this server does not keep ratios"
            found.append(failures.forbidden_field(f"{path}.maxLimitRequestRatio", detail))
        for key in ("default", "defaultRequest"):
            if kind == "Pod" and item.get(key):
                detail = "may not be specified when `type` is 'Pod'"
                found.append(failures.forbidden_field(f"{path}.{key}", detail))
        found += _check_order(item, path)
    return found


def _check_order(item: Mapping[str, Any], path: str) -> list[Violation]:
    amounts: dict[str, pods.Amounts] = {}
    for key in _BOUNDS:
        try:
            amounts[key] = {
                name: quantities.parse(name, value) for name, value in (item.get(key) or {}).items()
            }
        except errors.BadValueError as error:
            return [failures.bad(f"{path}.{key}", item[key], str(error))]
    found = []
    for lower, upper, at, lower_word, upper_word in (
        ("min", "max", "min", "min value", "max value"),
        ("min", "defaultRequest", "defaultRequest", "min value", "default request value"),
        ("defaultRequest", "max", "defaultRequest", "default request value", "max value"),
        ("defaultRequest", "default", "defaultRequest", "default request value", "default limit value"),
        ("min", "default", "default", "min value", "default value"),
        ("default", "max", "default", "default value", "max value"),
    ):
        for name in sorted(amounts[lower].keys() & amounts[upper].keys()):
            low, high = amounts[lower][name], amounts[upper][name]
            if low > high:
                shown = [quantities.format(name, amount) for amount in (low, high)]
                detail = f"{lower_word} {shown[0]} is greater than {upper_word} {shown[1]}"
                found.append(failures.bad(f"{path}.{at}[{name}]", item[at][name], detail))
    return found


LIMIT_RANGE = rules.Rules(default=_default_limits, check=_check_limits)


def _check_runtime_class(new: port.Object, old: port.Object | None) -> list[Violation]:
    if not new.get("handler"):
        return [failures.required("handler")]
    if old is not None and old["handler"] != new["handler"]:
        return [failures.bad("handler", new["handler"], "field is immutable")]
    return []


RUNTIME_CLASS = rules.Rules(check=_check_runtime_class)

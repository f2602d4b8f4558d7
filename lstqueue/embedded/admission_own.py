"""Rules of lstqueue's own kinds, from the same models that generate their CustomResourceDefinitions.

Nearly all writes are of the status, many per second, beside a spec of some kilobytes that was valid when it
came. So only what a write changes is looked at: the fields of the status that differ, and the rules whose
place in the object lies in something that changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lstqueue.api import cel, schema, schema_checks
from lstqueue.api import kinds as own
from lstqueue.embedded import failures, patches, rules
from lstqueue.embedded.failures import Violation
from lstqueue.kube import port


class _OwnKind:
    """Defaults and checks of one kind."""

    def __init__(self, row: own.Kind) -> None:
        self._kind = row.kind
        self._parts = schema.openapi(row.kind)["properties"]
        self._all = row.rules
        self._outside_spec = cel.RuleSet()
        for rule in row.rules:
            if rule.at.partition(".")[0] != "spec":
                self._outside_spec.add(rule)

    def rules(self) -> rules.Rules:
        """The functions for the registry of kinds."""
        return rules.Rules(default=self._default, check=self._check, checks_status=True)

    def _default(self, part: port.Object, old: port.Object | None) -> None:
        if "status" in part and old is not None:
            self._default_status(part, old.get("status"))
            part = {key: value for key, value in part.items() if key != "status"}
        self._fill(part)

    def _default_status(self, part: port.Object, old: object) -> None:
        changed = _differing(part["status"], old)
        if not isinstance(changed, dict):
            return
        names = list(changed)
        self._fill({"status": changed})
        for name in names:
            if name in changed:
                part["status"][name] = changed[name]
            else:
                part["status"].pop(name, None)

    def _fill(self, part: port.Object) -> None:
        schema.default(self._kind, part)
        schema.prune(self._kind, part)

    def _check(self, new: port.Object, old: port.Object | None) -> list[Violation]:
        if "spec" not in new:
            return [failures.required("spec")]
        same_spec = old is not None and new["spec"] is old.get("spec")
        findings: list[schema_checks.Finding] = []
        if not same_spec:
            findings += schema_checks.check(self._parts["spec"], new["spec"], "spec")
        if "status" in new:
            changed = _differing(new["status"], old.get("status") if old else None)
            findings += schema_checks.check(self._parts["status"], changed, "status")
        found = [Violation(finding.field, finding.message) for finding in findings]
        if not any(finding.blocks for finding in findings):
            asked = self._outside_spec if same_spec else self._all
            found += [
                Violation(broken.field or "<nil>", 'Invalid value: "object"', broken.rule.message)
                for broken in asked.broken(new, old)
            ]
        return found


def unknown_fields(kind: str, body: port.Object) -> list[str]:
    """The fields of a body that pruning would take away."""
    return schema.prune(kind, patches.copy_json(body))


def _differing(new: Any, old: Any) -> Any:
    """The fields of a status that differ from the older one; no field of a status is required."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return new
    return {key: value for key, value in new.items() if key not in old or old[key] != value}


RULES: Mapping[str, rules.Rules] = MappingProxyType(
    {kind: _OwnKind(row).rules() for kind, row in own.KINDS.items()}
)
"""By kind."""

"""The rules of every kind, asked by kind: what an API server checks beyond the schema."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lstqueue.api import cel, deadlinejob_rules, gpuqueue_rules, interconnect_rules

RULES: Mapping[str, cel.RuleSet] = MappingProxyType(
    {
        "DeadlineJob": deadlinejob_rules.RULES,
        "GPUQueue": gpuqueue_rules.RULES,
        "Interconnect": interconnect_rules.RULES,
    }
)
"""The rules by kind."""


def violations(
    kind: str, new: Mapping[str, Any], old: Mapping[str, Any] | None = None
) -> list[tuple[str, str]]:
    """Return (field, message) of every rule that `new` breaks.

    Expects objects as they would be stored: defaulted, pruned, and with the status that the write leaves in
    place. An API server asks its rules only when `schema.validate` found nothing that blocks them.

    Args:
        kind: "DeadlineJob", "GPUQueue" or "Interconnect".
        new: the object that a write would store.
        old: the object it replaces, None on creation.
    """
    return [(broken.field, broken.rule.message) for broken in RULES[kind].broken(new, old)]

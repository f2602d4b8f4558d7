"""What an Interconnect must keep beyond the types of its fields: CEL for the API server, and Python twins.

Nodes and links that are written down have none: of so many items an API server lets no rule be asked.
"""

from __future__ import annotations

from typing import Any

from lstqueue.api import cel

KINDS = ("nodeLabels", "configMap", "topology", "hyperNodes", "explicit")
"""The fields of a source that say where it is."""

RULES = cel.RuleSet()


@RULES.rule(
    "spec.sources[name]",
    cel=f"[{', '.join(f'has(self.{kind})' for kind in KINDS)}].filter(one, one).size() == 1",
    problem="a source is in exactly one place",
    remedy=f"write one of {', '.join(KINDS)}",
)
def _one_place(new: Any, _old: Any) -> bool:
    return sum(new.get(kind) is not None for kind in KINDS) == 1


@RULES.rule(
    "spec.sources[name].nodeLabels",
    cel="!has(self.preset) || !has(self.keys) || self.keys.size() == 0",
    problem="a preset has its own keys",
    remedy="write preset or keys",
)
def _preset_or_keys(new: Any, _old: Any) -> bool:
    return not (new.get("preset") and new.get("keys"))

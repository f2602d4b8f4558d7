"""Rules of lstqueue's own kinds, from the same models that generate their CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Mapping

from lstqueue.embedded import rules

RULES: Mapping[str, rules.Rules] = {"DeadlineJob": rules.Rules(), "GPUQueue": rules.Rules()}

"""One write to the API and what becomes of it."""

from __future__ import annotations

import dataclasses
from typing import Any

from cases.objects import Object


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """One write. Accepted when `message` is empty."""

    name: str
    new: Object
    field: str = ""
    message: str = ""
    old: Object | None = None
    subresource: str = ""

    @property
    def kind(self) -> str:
        return self.new["kind"]

    @property
    def accepted(self) -> bool:
        return not self.message


def refused(name: str, new: Object, field: str, message: str, **more: Any) -> Case:
    return Case(name, new, field, message, **more)

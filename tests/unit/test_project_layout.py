"""House rules that no linter checks."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONGEST = 500
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in ("lstqueue", "tests", "hack")
    for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_module_outgrows_a_reader(module: pathlib.Path) -> None:
    lines = len((ROOT / module).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{module} has {lines} lines; split it by idea, 300 is a good length"


def test_every_room_says_what_it_is() -> None:
    for package in sorted((ROOT / "lstqueue").rglob("__init__.py")):
        assert package.read_text(encoding="utf-8").startswith('"""'), f"{package} has no docstring"


def test_what_differs_between_kinds_of_units_is_behind_one_door() -> None:
    users = set()
    for path in (ROOT / "lstqueue").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [item.name for item in node.names] if isinstance(node, ast.ImportFrom) else []
            if {"lifecycle_inline", "lifecycle_unit"} & set(imported):
                users.add(path.stem)
    assert users == {"lifecycle"}

"""House rules that no linter checks."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LONGEST = 500
LONGEST_FUNCTION = 50
"""Lines without the docstring."""
MODULES = sorted(
    path.relative_to(ROOT)
    for folder in ("lstqueue", "tests", "hack")
    for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_no_module_outgrows_a_reader(module: pathlib.Path) -> None:
    lines = len((ROOT / module).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{module} has {lines} lines; split it by idea, 300 is a good length"


def test_no_function_outgrows_a_screen() -> None:
    grown = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {_lines(node)} lines"
        for path in sorted((ROOT / "lstqueue").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines(node) > LONGEST_FUNCTION
    ]
    assert grown == [], "split by idea what is too long"


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function, its arguments included, its docstring not."""
    assert function.end_lineno is not None
    first, said = function.body[0], 0
    if ast.get_docstring(function) is not None and first.end_lineno is not None:
        said = first.end_lineno - first.lineno + 1
    return function.end_lineno - function.lineno + 1 - said


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

"""The options of a command as they were, and the command line that gives them again.

Read off the command itself, so that a new option is in every report without anybody thinking of it. Where to
write results is no setting: it changes none of them.
"""

from __future__ import annotations

import pathlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from lstqueue.evaluate.report import page, words


def of(context: click.Context) -> tuple[page.Setting, ...]:
    """Return all settings of a command, in the order of its help."""
    found = []
    for option in context.command.params:
        name = option.name or ""
        value = context.params.get(name)
        if not isinstance(option, click.Option) or isinstance(value, pathlib.Path) or _writes(option):
            continue
        given = context.get_parameter_source(name) is not ParameterSource.DEFAULT
        found.append(page.Setting(_flag(option, value), _text(value), given))
    return tuple(found)


def command(context: click.Context) -> str:
    """Return the command line, with what was given and is no default."""
    words_ = ["lstqueue", *context.command_path.split()[1:]]
    for option in context.command.params:
        name = option.name or ""
        value = context.params.get(name)
        is_default = context.get_parameter_source(name) is ParameterSource.DEFAULT
        if not isinstance(option, click.Option) or is_default or _writes(option):
            continue
        if isinstance(value, bool):
            words_.append(_flag(option, value))
            continue
        for item in value if isinstance(value, tuple) else (value,):
            words_ += [_flag(option, value), str(item)]
    return shlex.join(words_)


def filled(told: Sequence[page.Setting], times: Mapping[str, int]) -> tuple[page.Setting, ...]:
    """Say of options that nobody gave, and that a preset decides, what they came to.

    Args:
        told: All settings.
        times: Times in ms by the name of the option.
    """
    found = {f"--{name}": words.span(time / 1000) for name, time in times.items()}
    return tuple(
        item if item.given else replace(item, value=found.get(item.flag, item.value)) for item in told
    )


def _writes(option: click.Option) -> bool:
    return isinstance(option.type, click.Path) and not option.type.exists


def _flag(option: click.Option, value: Any) -> str:
    """The long name, of a pair of flags the one that says `value`."""
    names = option.secondary_opts if value is False and option.secondary_opts else option.opts
    return max(names, key=len)


def _text(value: Any) -> str:
    if value is None:
        return words.NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(str(item) for item in value) if isinstance(value, tuple) else str(value)

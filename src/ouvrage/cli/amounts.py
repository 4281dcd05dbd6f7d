"""Sizes and lengths of time as options: written as in a job file, read by the same functions.

Decides nothing of its own, so that ``16GiB`` and ``2h`` mean the same on a command line and in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ouvrage.placement.spec_values import duration_us, size_mib

if TYPE_CHECKING:
    _Kind = click.ParamType[int]
else:
    _Kind = click.ParamType  # takes no type before Click 8.3


class Amount(_Kind):
    """A value that one of the job file's readers understands."""

    def __init__(self, name: str, read: Callable[[Any], int]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The amount, or the refusal of a text that is none."""
        if isinstance(value, int):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(f"{value!r}: expected {error}", param, ctx)


SIZE = Amount("size", size_mib)
"""Mebibytes."""
TIME = Amount("time", duration_us)
"""Microseconds."""

"""How verbs print: text for people, one JSON value with ``--json``, refusals, files, tables.

Labels and commands come from anywhere, so control characters in them are shown, never sent to the
terminal. Columns line up by what a terminal draws, not by the number of characters.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from ouvrage.base.errors import NOTHING_WRITTEN, OuvrageError
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe

_NOT_WRITTEN = "output/not-written"


def say_text(text: str, *, err: bool = False) -> None:
    """Print lines for a person. A reader that went away has seen enough; a full disk is told."""
    with _written(2 if err else 1):
        click.echo(text, err=err)


def say_bytes(content: bytes) -> None:
    """Write bytes to standard output, all of them."""
    with _written(1):
        click.echo(content, nl=False)


@contextmanager
def _written(descriptor: int) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would try the rest again at its end, and turn the exit code into its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
        raise OuvrageError(
            _NOT_WRITTEN, f"the answer could not be written: {error.strerror}", exit_code=1
        ) from error


def json_text(value: Any) -> str:
    """A JSON value as every verb prints and writes it: the same value, the same bytes."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    # Half a character in a text of others' is no UTF-8: JSON has an escape for it, which is what this writes.
    return text.encode("utf-8", "backslashreplace").decode()


def say_json(value: Any) -> None:
    """Print one JSON value."""
    say_text(json_text(value))


def exact_json_text(value: Any, depth: int = 0) -> str:
    """``json_text`` in which a ``Fraction`` is a number with all digits of its exact value.

    28 significant digits where the decimal form does not end: a float would keep only 15.
    """
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, dict):
        ends, items = (
            "{}",
            [f"{json.dumps(k)}: {exact_json_text(v, depth + 1)}" for k, v in value.items()],
        )
    elif isinstance(value, (list, tuple)):
        ends, items = "[]", [exact_json_text(v, depth + 1) for v in value]
    else:
        return json_text(value)
    if not items:
        return ends
    inner = "\n" + "  " * (depth + 1)
    return f"{ends[0]}{inner}{f',{inner}'.join(items)}\n{'  ' * depth}{ends[1]}"


_wrote: ContextVar[bool] = ContextVar("_wrote", default=False)


def begin() -> None:
    """A command begins: so far it has written nothing."""
    _wrote.set(False)


def wrote() -> None:
    """The command has left something behind, so that no refusal says that it did not."""
    _wrote.set(True)


def say_error(error: OuvrageError, *, as_json: bool) -> int:
    """Print a refusal (on stdout with ``--json``, where the reader waits for it); its exit code.

    Where the command has written neither a fact nor a file, the last line says so.
    """
    if as_json and error.code != _NOT_WRITTEN:
        say_json(error.as_json())
        return error.exit_code
    lines = [safe(line) for line in error.lines()]
    if error.code != _NOT_WRITTEN and not _wrote.get():
        lines.append(NOTHING_WRITTEN)
    with suppress(OuvrageError):  # stderr may lead to the same full disk
        say_text("\n".join(lines), err=True)
    return error.exit_code


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file or leave what was there: a reader never sees half of it."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    if not path.name:
        raise OuvrageError("file/no-name", "an empty file name", hint="name a file to write")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(data)
        beside.replace(path)
        wrote()
    except OSError as error:
        with suppress(OSError):  # most often it could not even be made
            beside.unlink()
        raise OuvrageError(
            "file/not-written",
            f"{path} could not be written: {error.strerror}",
            hint="name a file in a directory that you may write to",
        ) from error


def shortened(text: str, width: int) -> str:
    """A safe text of at most this many columns."""
    clean = safe(text)
    if drawn_width(clean) <= width:
        return clean
    while drawn_width(clean) > width - 1:
        clean = clean[:-1]
    return clean + "…"


def drawn_width(text: str) -> int:
    """Columns that a terminal uses for a text."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) != 0 for c in text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: str) -> str:
    """Rows under a head, columns aligned; ``right`` holds one of ``<`` and ``>`` a column."""
    lines = [list(head), *map(list, rows)]
    widths = [max(drawn_width(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(_aligned(line, widths, right) for line in lines)


def _aligned(line: Sequence[str], widths: Sequence[int], right: str) -> str:
    cells = []
    for text, width, side in zip(line, widths, right, strict=True):
        blank = " " * (width - drawn_width(text))
        cells.append(blank + text if side == ">" else text + blank)
    return "  ".join(cells).rstrip()

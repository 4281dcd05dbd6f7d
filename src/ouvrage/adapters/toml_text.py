"""TOML texts and other files that a person wrote, read with exact decimals and told with their line.

Decides how a file that cannot be read is refused. TOML needs Python 3.11; on an older one, where only
metering is meant to run, the refusal says so.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_in

if sys.version_info >= (3, 11):
    import tomllib

    def _loads(text: str) -> dict[str, Any]:
        return tomllib.loads(text, parse_float=decimal_in)
else:

    def _loads(text: str) -> dict[str, Any]:
        raise OuvrageError(
            "python/too-old",
            "files in TOML are read with Python 3.11 or newer",
            hint="metering runs on 3.10 too; use the other verbs where a newer Python is",
        )


_LINE = re.compile(r"\(at line ([0-9]+)")


LARGEST = 256 * 2**20
"""No catalogue, bill or table of usage is larger; a device such as /dev/zero never ends."""


def load_toml(file: str, text: str, code: str) -> dict[str, Any]:
    """A TOML text as a dictionary with exact decimals; a text that is none is refused with its line."""
    try:
        return _loads(text)
    except ValueError as error:
        found = _LINE.search(str(error))
        number = int(found[1]) if found else None
        lines = text.splitlines()
        line = lines[number - 1].strip()[:160] if number and number <= len(lines) else ""
        raise OuvrageError(
            code,
            f"{file} is no TOML: {error}"[:300],
            where=(f"{file}:{number}   {line}" if number else file,),
            hint="texts stand in quotes, dates do not, and a table's name stands in brackets",
        ) from error
    except RecursionError as error:
        raise OuvrageError(
            code, f"{file} is nested too deeply", hint="write a plan by hand"
        ) from error


def read_text(path: Path, area: str, largest: int = LARGEST, errors: str = "strict") -> str:
    """A text file of at most ``largest`` bytes, or a refusal; ``errors``: ``replace`` where bytes may be no text."""
    try:
        with path.open("rb") as file:
            data = file.read(largest + 1)
        if len(data) > largest:
            size = f"{largest // 2**20} MiB" if largest >= 2**20 else f"{largest // 2**10} KiB"
            raise OuvrageError(
                f"{area}/file",
                f"{path} is larger than {size}",
                hint="divide it into several files",
            )
        return data.decode("utf-8-sig", errors)
    except OSError as error:
        raise OuvrageError(
            f"{area}/file",
            f"{path} could not be read: {error.strerror}",
            hint="name a file that exists",
        ) from error
    except UnicodeDecodeError as error:
        raise OuvrageError(
            f"{area}/file", f"{path} is no UTF-8 text: byte {error.start}", hint="save it as UTF-8"
        ) from error

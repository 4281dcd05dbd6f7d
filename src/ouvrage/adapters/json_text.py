"""JSON texts of others, read with exact decimals and told with their line.

Decides how a text that is none is refused. It stands apart from what reads catalogues, so that a bill or a
feed does not wait for the forms of all of them.
"""

from __future__ import annotations

import json
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import decimal_in

_OFFERS = "a list of offers, or an object that holds one under 'offers'"


def load_json(file: str, text: str, code: str, hint: str = _OFFERS) -> Any:
    """A JSON text with exact decimals; a text that is none is refused with its line."""
    try:
        return json.loads(text, parse_float=decimal_in, parse_constant=_no_number)
    except RecursionError as error:
        raise OuvrageError(
            code, f"{file} is nested too deeply", hint="write a flat list"
        ) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise OuvrageError(
            code,
            f"{file} is no JSON: {error}",
            where=(f"{file}:{line}" if line else file,),
            hint=hint,
        ) from error


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")

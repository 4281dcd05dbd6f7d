r"""The canonical payload of a kind as a regular expression.

A match proves in one pass over the text that a payload is canonical JSON *and* that its kind can
read it, several times faster than parsing, writing it again and comparing. It is a shortcut only:
a payload that does not match is judged the slow way (``admission``), so this module decides nothing
by itself. Kinds are dataclasses of integers, texts, optional ones, tuples and other such
dataclasses, never of themselves, so that their texts are a regular language.
"""

from __future__ import annotations

import re
import types
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

_INTEGER = "-?[1-9][0-9]{0,999}|0"
_PLAIN = r'[^"\\\x00-\x1f\ud800-\udfff]*'
_ESCAPE = r'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))'
_TEXT = f'"{_PLAIN}(?:{_ESCAPE}{_PLAIN})*"'
_SCALARS: dict[Any, str] = {int: _INTEGER, str: _TEXT, bool: "true|false"}


@cache
def shape_of(kind: type) -> re.Pattern[str]:
    """What every canonical payload of this kind, and nothing else, matches in full."""
    return re.compile(_shape(kind))


def _shape(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = [_shape(arg) for arg in get_args(hint) if arg is not type(None)]
        return f"{inner[0]}|null"
    if origin is tuple:
        item = _shape(get_args(hint)[0])
        return rf"\[(?:(?:{item})(?:,(?:{item}))*)?\]"
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    return _SCALARS[hint]


def _object(kind: type) -> str:
    hints = get_type_hints(kind)
    names = sorted(field.name for field in fields(kind))
    return r"\{%s\}" % ",".join(f'"{name}":(?:{_shape(hints[name])})' for name in names)

"""Canonical JSON: one value, one text, so that a hash of the text identifies the value.

Keys sorted, no white space, UTF-8 as it is, no NaN. Floats are refused by the ledger's kinds, not
here: a float has no canonical decimal form, and no figure we keep needs one.
"""

from __future__ import annotations

import hashlib
import json
from json.encoder import encode_basestring
from typing import Any

_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_make: Any = getattr(json.encoder, "c_make_encoder", None)
# What encode() makes anew for every text: very many small ones are hashed.
_chunks: Any = _make and _make(
    None, _encoder.default, encode_basestring, None, ":", ",", True, False, False
)


def canonical(value: Any) -> str:
    """The canonical text of a JSON value."""
    if _chunks is None or isinstance(value, str):
        return _encoder.encode(value)
    return "".join(_chunks(value, 0))


def sha256_hex(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

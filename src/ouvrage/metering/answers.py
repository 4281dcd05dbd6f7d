"""Tokens in the answers of a service that speaks as OpenAI's do, read while the answer passes.

Decides that a count of tokens is the server's own (``usage``) and nothing else: where an answer gives none, its
tokens are unknown, and the pieces that came are counted under that name. What is no such answer has no tokens.
Little is kept: a line of a stream, or an answer up to a limit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

LONGEST = 4 << 20
"""Bytes of an answer, or of one line of a stream, that are read; a longer one is passed on unread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """``tokens_in`` and ``tokens_out`` as the server counted them, None where it did not say; ``pieces`` of a stream."""

    tokens_in: int | None
    tokens_out: int | None
    pieces: int


class AnswerReader:
    """Reads one answer of a stated content type, piece by piece."""

    def __init__(self, content_type: str) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self._stream = kind == "text/event-stream"
        self._reads = self._stream or kind == "application/json"
        self._held = bytearray()
        self._usage: Any = None
        self._pieces = 0

    def take(self, data: bytes) -> bool:
        """Read what comes next; whether a piece of text was in it."""
        if not self._reads:
            return False
        self._held += data
        before = self._pieces
        if self._stream:
            *lines, rest = self._held.split(b"\n")
            self._held = rest
            for line in lines:
                self._line(bytes(line))
        if len(self._held) > LONGEST:
            self._reads, self._held = False, bytearray()
        return self._pieces > before

    def answered(self) -> Answered:
        """What it came to, once it has ended."""
        if self._reads and not self._stream:
            told = _parsed(bytes(self._held))
            self._usage = told.get("usage")
        usage = self._usage if isinstance(self._usage, dict) else {}
        return Answered(
            tokens_in=_count(usage, "prompt_tokens", "input_tokens"),
            tokens_out=_count(usage, "completion_tokens", "output_tokens"),
            pieces=self._pieces,
        )

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        told = _parsed(line[5:])
        inner = told.get("response")
        usage = told.get("usage") or (inner.get("usage") if isinstance(inner, dict) else None)
        self._usage = usage or self._usage
        self._pieces += _has_text(told)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _has_text(told: dict[str, Any]) -> bool:
    """Whether an event brings a piece of the answer: of a completion, a chat, or a response."""
    if isinstance(told.get("delta"), str):
        return bool(told["delta"])
    choices = told.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        delta = choice.get("delta")
        if choice.get("text") or (isinstance(delta, dict) and _says(delta)):
            return True
    return False


def _says(delta: dict[str, Any]) -> bool:
    names = ("content", "reasoning_content", "reasoning", "tool_calls")
    return any(delta.get(name) for name in names)


def _count(usage: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if type(value) is int and value >= 0:
            return value
    return None

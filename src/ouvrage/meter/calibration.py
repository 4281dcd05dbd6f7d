"""What is found out about a server before a load is put on it: its model, its options, its tokens.

Decides, by asking, which of the options it takes (counting in the stream, going on past the end of
the text) and how many words make a token there, so that prompts get the length that a trace wants.
These few requests are no part of the load, of its time or of its cost.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ouvrage.adapters.openai_server import CHAT, COMPLETIONS, Endpoint, Exchange, models
from ouvrage.base.errors import OuvrageError
from ouvrage.base.text import safe
from ouvrage.base.time import SECOND

MODELS_S = 10.0
_LONGEST_NAME = 500
_WORDS = (16, 128)
_TOKENS_OUT = 2
_SETTINGS: dict[str, Any] = {"stream_options": {"include_usage": True}, "ignore_eos": True}
_NOT_TAKEN = frozenset({400, 404, 405, 415, 422})


def acquainted(
    url: str, model: str | None, *, chat: bool, key: str | None, timeout_us: int
) -> Endpoint:
    """The endpoint as this server takes it. Raises ``OuvrageError`` where it does not answer."""
    bare = Endpoint(url=url, model=model or "", key=key)
    if model is None:
        bare = replace(bare, model=_first_model(bare))
    path = CHAT if chat else COMPLETIONS
    endpoint, first = _accepted(replace(bare, path=path), timeout_us, chat=chat)
    return _measured(endpoint, first, timeout_us)


def _first_model(endpoint: Endpoint) -> str:
    try:
        found = _found_models(endpoint)
    except (OSError, ValueError, RecursionError) as error:
        words = safe(str(error) or type(error).__name__)
        raise OuvrageError(
            "inference/no-server", f"{endpoint.url} does not name its models: {words}",
            hint="is the server up? --model NAME asks for one without looking",
        ) from error  # fmt: skip
    if not found:
        raise OuvrageError(
            "inference/no-model", f"{endpoint.url} names no model", hint="--model NAME"
        )
    if len(found[0]) > _LONGEST_NAME or not found[0].isprintable():
        raise OuvrageError(
            "inference/no-model", f"{endpoint.url} names a model that nobody can write",
            hint="--model NAME",
        )  # fmt: skip
    return found[0]


def _found_models(endpoint: Endpoint) -> list[str]:
    """The models, or the error, within ``MODELS_S`` in all, however slowly bytes drip in."""
    found: list[list[str]] = []
    failed: list[Exception] = []

    def look() -> None:
        try:
            found.append(models(endpoint, MODELS_S))
        except (OSError, ValueError, RecursionError) as error:
            failed.append(error)

    if not _ended(look, MODELS_S):
        raise TimeoutError(f"no whole answer within {MODELS_S:g} s")
    if failed:
        raise failed[0]
    return found[0]


def _ended(work: Callable[[], None], most_s: float) -> bool:
    """Whether it ended in time; if not, its thread is left behind."""
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    worker.join(most_s)
    return not worker.is_alive()


def _accepted(endpoint: Endpoint, timeout_us: int, *, chat: bool) -> tuple[Endpoint, Exchange]:
    """The first way of asking that is answered: with every option, else with fewer."""
    paths = (CHAT,) if chat else (COMPLETIONS, CHAT)
    told: Exchange | None = None
    for path in paths:
        for names in (("stream_options", "ignore_eos"), ("stream_options",), ()):
            asked = replace(endpoint, path=path, settings={name: _SETTINGS[name] for name in names})
            answer = _ask(asked, _WORDS[0], timeout_us)
            if answer.status == "ok":
                return asked, answer
            told = told or answer
            if answer.http not in _NOT_TAKEN:
                raise _refused(endpoint, answer)
    assert told is not None
    raise _refused(endpoint, told)


def _ask(endpoint: Endpoint, words: int, timeout_us: int) -> Exchange:
    body = endpoint.body(-words, words, _TOKENS_OUT)
    exchange = Exchange(endpoint, body, timeout_us, asked_out=_TOKENS_OUT)
    if not _ended(exchange.run, timeout_us / SECOND):
        exchange.stop("timeout")
        exchange.status = "timeout"
    return exchange


def _refused(endpoint: Endpoint, answer: Exchange) -> OuvrageError:
    http = f" (HTTP {answer.http})" if answer.http not in (None, 200) else ""
    told = answer.words
    if endpoint.key:  # some servers repeat what they refuse
        told = told.replace(endpoint.key, "(the key)")
    words = safe(" ".join(told.split())[:200])
    return OuvrageError(
        "inference/no-answer",
        f"{endpoint.url} did not complete a first prompt: {answer.status}{http}",
        where=(words,) if words else (),
        hint="--model NAME names another model, --api-key-file FILE a key, --chat the other endpoint",
    )


def _measured(endpoint: Endpoint, first: Exchange, timeout_us: int) -> Endpoint:
    """With the words that make a token here: two prompts of different length tell."""
    few, many = _WORDS
    asked = endpoint
    if first.tokens_in is None:  # some servers count only in an answer that comes in one piece
        asked = replace(endpoint, settings={"stream": False})
        first = _ask(asked, few, timeout_us)
    second = _ask(asked, many, timeout_us)
    tokens = (first.tokens_in, second.tokens_in)
    if tokens[0] is None or tokens[1] is None or tokens[1] <= tokens[0]:
        return endpoint
    words_ppm = (many - few) * 1_000_000 // (tokens[1] - tokens[0])
    extra = max(0, tokens[0] - few * 1_000_000 // words_ppm)
    return replace(endpoint, words_ppm=words_ppm, extra=extra)


def words_of(settings: Any) -> tuple[str, ...]:
    """The options that a server took, as a fact keeps them."""
    return tuple(f"{name}={json.dumps(value, sort_keys=True)}" for name, value in settings.items())

"""What servers of language models print: vLLM and llama.cpp.

Decides which lines tell of finished requests and generated tokens. Tokens of a prompt are not
counted as units: they are input, not work done. vLLM prints mean rates, so its tokens are a rate times the
time between two such lines, by the clock in the lines themselves.
"""

from __future__ import annotations

import re

from ouvrage.metering.recognisers.rule import COUNT, RATE, TOLD, TOTAL, Reading, Rule, found, said
from ouvrage.metering.recognisers.serving_log import DONE, EVAL, PROMPT, RATES

_RATE = (
    rb"(?:(\d\d):(\d\d):(\d\d)\b.{0,80}?)?(?:Engine (\d{1,6}): )?"
    rb"Avg prompt throughput: (\d{1,12})\.(\d) tokens/s, "
    rb"Avg generation throughput: (\d{1,12})\.(\d) tokens/s"
    rb"(?:, Running: (\d{1,9}) reqs.{0,40}?, (?:Pending|Waiting): (\d{1,9}) reqs)?"
)
_OFFLINE = rb"^Processed prompts: .{0,1500}\| (\d{1,9})/(\d{1,9}) \[.{0,150}output: [\d.]+ toks/s"
_START = rb"(?:^|[:|\]])\s*"
_MS = rb"\s*(\d{1,12})\.(\d{2}) ms"
_PROMPT = _START + rb"prompt eval time =" + _MS + rb" /\s*(\d{1,12}) tokens\b"
_EVAL = _START + rb"eval time =" + _MS + rb" /\s*(\d{1,12}) (tokens|runs)\b"
_TOTAL = _START + rb"total time =" + _MS + rb"(?: /\s*\d+ tokens)?\s*$"


def _rate(line: bytes) -> Reading | None:
    match = found(_RATE, line)
    if match is None:
        return None
    clock = None
    if match[1]:
        clock = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])
    into, out = (int(match[at]) * 10 + int(match[at + 1]) for at in (5, 7))
    told = (RATES, into, out, int(match[9]), int(match[10])) if match[9] else None
    return Reading(RATE, out, series=match[4] or b"", clock=clock, told=told)


def _offline(line: bytes) -> Reading | None:
    match = found(_OFFLINE, line)
    if match is None:
        return None
    return Reading(TOTAL, int(match[1]), int(match[2]), first=match[1] == b"0")


def _us(match: re.Match[bytes]) -> int:
    return (int(match[1]) * 100 + int(match[2])) * 10


def _prompt(line: bytes) -> Reading | None:
    match = found(_PROMPT, line)
    return Reading(TOLD, told=(PROMPT, _us(match), int(match[3]))) if match else None


def _eval(line: bytes) -> Reading | None:
    match = found(_EVAL, line)
    if match is None:
        return None
    # Runs are those after the prompt's own, which gave the first token; the server counts it.
    made = int(match[3]) + (match[4] == b"runs")
    return Reading(COUNT, int(match[3]), told=(EVAL, _us(match), made))


def _total(line: bytes) -> Reading | None:
    match = found(_TOTAL, line)
    return Reading(COUNT, 1, told=(DONE, _us(match))) if match else None


RULES = (
    Rule("vllm", "token", b"Avg prompt throughput", _rate),
    Rule("vllm", "request", b"Processed prompts", _offline),
    Rule("vllm", "request", b'"POST /v1/',
         said(rb'"POST /v1/(?:(?:chat/)?completions|responses|embeddings|score|rerank) HTTP/[\d.]+" 200\b',
              COUNT, 1)),
    Rule("llama.cpp", "prompt", b"prompt eval time =", _prompt),
    Rule("llama.cpp", "token", b"eval time =", _eval),
    Rule("llama.cpp", "request", b"total time =", _total),
)  # fmt: skip

"""What servers of language models print: vLLM and llama.cpp.

Decides which lines tell of finished requests and generated tokens. Tokens of a prompt are not
counted: they are input, not work done. vLLM prints mean rates, so its tokens are a rate times the
time between two such lines, by the clock in the lines themselves.
"""

from __future__ import annotations

from ouvrage.metering.recognisers.rule import COUNT, RATE, TOTAL, Reading, Rule, found, said

_RATE = (
    rb"(?:(\d\d):(\d\d):(\d\d)\b.{0,80}?)?(?:Engine (\d{1,6}): )?"
    rb"Avg prompt throughput: \d{1,12}\.\d tokens/s, "
    rb"Avg generation throughput: (\d{1,12})\.(\d) tokens/s"
)
_OFFLINE = rb"^Processed prompts: .{0,1500}\| (\d{1,9})/(\d{1,9}) \[.{0,150}output: [\d.]+ toks/s"


def _rate(line: bytes) -> Reading | None:
    match = found(_RATE, line)
    if match is None:
        return None
    clock = None
    if match[1]:
        clock = (int(match[1]) * 60 + int(match[2])) * 60 + int(match[3])
    return Reading(RATE, int(match[5]) * 10 + int(match[6]), series=match[4] or b"", clock=clock)


def _offline(line: bytes) -> Reading | None:
    match = found(_OFFLINE, line)
    if match is None:
        return None
    return Reading(TOTAL, int(match[1]), int(match[2]), first=match[1] == b"0")


RULES = (
    Rule("vllm", "token", b"Avg prompt throughput", _rate),
    Rule("vllm", "request", b"Processed prompts", _offline),
    Rule("vllm", "request", b'"POST /v1/',
         said(rb'"POST /v1/(?:(?:chat/)?completions|responses|embeddings|score|rerank) HTTP/[\d.]+" 200\b',
              COUNT, 1)),
    Rule("llama.cpp", "token", b"eval time =",
         said(rb"(?:^|[:|\]])\s*eval time =\s*[\d.]+ ms /\s*(?P<n>\d{1,12}) (?:tokens|runs)\b",
              COUNT)),
    Rule("llama.cpp", "request", b"total time =",
         said(rb"(?:^|[:|\]])\s*total time =\s*[\d.]+ ms(?: /\s*\d+ tokens)?\s*$", COUNT, 1)),
)  # fmt: skip

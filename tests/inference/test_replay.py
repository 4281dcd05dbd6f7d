"""A load on a server of known pace: what is sent, what is timed, and how every failure is named."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.openai_server import Endpoint, Exchange
from tests.blackbox.home import home_in
from tests.support.inside import Inside
from tests.support.model_server import Model, serving

DATA = os.environ.get("OUVRAGE_DATA")
TRACE = "at_s,tokens_in,tokens_out\n"


@pytest.fixture
def ouvrage(tmp_path: Path) -> Inside:
    return Inside(tmp_path / "home")


@pytest.fixture
def model() -> Iterator[Model]:
    with serving() as model:
        yield model


def trace(tmp_path: Path, *rows: tuple[float, int, int]) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE + "".join(f"{at},{into},{out}\n" for at, into, out in rows))
    return str(path)


def replay(ouvrage: Inside, where: str, url: str, *words: str) -> tuple[int, dict[str, Any]]:
    said = ouvrage(
        "inference", "replay", where, "--server", url, "--price", "2/h", *words, "--json"
    )
    return said.code, json.loads(said.out)


def test_tokens_and_costs_are_exact(ouvrage: Inside, tmp_path: Path, model: Model) -> None:
    rows = [(n / 100, 10 + n, 3 + n % 2) for n in range(20)]
    code, report = replay(ouvrage, trace(tmp_path, *rows), model.url)
    found = report["inference"]
    into, out = sum(n for _, n, _ in rows), sum(n for *_, n in rows)
    assert code == 0
    assert found["requests"] == {
        "sent": 20, "finished": 20, "failed": 0,
        "per_second": pytest.approx(20 / report["wall_s"], rel=1e-4),
    }  # fmt: skip
    assert (found["tokens_in"]["total"], found["tokens_out"]["total"]) == (into, out)
    assert found["tokens_in"]["cached"] == 20
    assert found["load"]["asked_in"] == into
    paid = float(report["cost"]["total"])
    assert paid == pytest.approx(2 * report["wall_s"] / 3600, rel=1e-4)
    for way, number in (("in", into), ("out", out), ("all", into + out)):
        cost = float(found["cost_per_million_tokens"][way])
        assert cost == pytest.approx(paid / number * 1e6, rel=1e-9)
    assert float(found["cost_per_request"]) == pytest.approx(paid / 20, rel=1e-9)
    assert float(found["cost_of_failed"]) == 0
    assert found["first_token_s"]["samples"] == 20
    assert found["first_token_s"]["p95"] >= found["first_token_s"]["p50"] > 0
    assert found["first_token_s"]["p99"] is None
    assert "too few for p99" in report["unknown"]["inference.first_token_s.p99"]


def test_prompts_have_the_length_that_was_asked_for_and_no_common_beginning(
    ouvrage: Inside, tmp_path: Path, model: Model
) -> None:
    replay(ouvrage, trace(tmp_path, (0, 40, 2), (0, 40, 2), (0, 7, 1)), model.url)
    sent = model.bodies[model.manner.warm_up :]
    assert sorted(len(body["prompt"].split()) for body in sent) == [6, 39, 39]
    assert len({body["prompt"][:12] for body in sent}) == 3
    assert all(body["ignore_eos"] and body["stream_options"] for body in sent)
    again = len(model.bodies)
    replay(ouvrage, trace(tmp_path, (0, 40, 2), (0, 40, 2), (0, 7, 1)), model.url)
    assert {b["prompt"] for b in model.bodies[again:]} == {
        b["prompt"] for b in model.bodies[:again]
    }


def test_an_open_loop_does_not_wait_for_answers(ouvrage: Inside, tmp_path: Path) -> None:
    with serving(prefill_s=0.4) as model:
        rows = trace(tmp_path, *((n / 50, 5, 2) for n in range(10)))
        _, report = replay(ouvrage, rows, model.url)
    found = report["inference"]
    assert model.most_at_once >= 8
    assert found["concurrency"]["max"] >= 8
    assert found["first_token_s"]["p50"] >= 0.4
    assert found["lag_s"]["max"] < 0.4


def test_a_replay_is_an_attempt_in_a_campaign(
    ouvrage: Inside, tmp_path: Path, model: Model
) -> None:
    words = ("--campaign", "serving", "--limit", "2", "--for", "20s", "--rate", "50")
    _, report = replay(ouvrage, trace(tmp_path, (0, 5, 2), (0, 5, 2), (0, 5, 2)), model.url, *words)
    assert report["inference"]["requests"]["sent"] == 2
    campaign = ouvrage("report", "--campaign", "serving", "--json").json
    assert len(campaign["attempts"]) == 1


def test_nothing_is_sent_after_the_time_that_was_given(
    ouvrage: Inside, tmp_path: Path, model: Model
) -> None:
    where = trace(tmp_path, (0, 5, 2), (0.3, 5, 2), (5, 5, 2))
    _, report = replay(ouvrage, where, model.url, "--for", "0.2s")
    assert report["inference"]["requests"]["sent"] == 1
    assert report["inference"]["load"]["planned"] == 3


def test_a_closed_loop_keeps_so_many_at_once(ouvrage: Inside, tmp_path: Path) -> None:
    with serving(prefill_s=0.02) as model:
        rows = trace(tmp_path, *((n / 50, 5, 2) for n in range(30)))
        _, report = replay(ouvrage, rows, model.url, "--concurrency", "3")
    found = report["inference"]
    assert model.most_at_once <= 4  # its count goes down a moment after the client has its answer
    assert found["concurrency"]["max"] == 3
    assert "lag_s" not in found
    assert found["load"]["pace"] == "3 at once"


def test_every_failure_has_a_name_and_a_cost(ouvrage: Inside, tmp_path: Path) -> None:
    faults = {
        2: "429",
        3: "500",
        4: "cut",
        5: "garbled",
        6: "error",
        7: "hang",
        8: "hang-up",
        9: "drip",
    }
    with serving(faults=faults) as model:
        rows = trace(tmp_path, *((n, 5, 3) for n in range(10)))
        words = ("--speed-up", "20", "--timeout", "2s")
        code, report = replay(ouvrage, rows, model.url, *words)
    found = report["inference"]
    assert code == 0
    assert found["failures"] == {
        "refused": 2, "cut": 1, "garbled": 1, "failed": 1, "timeout": 2, "unreachable": 1
    }  # fmt: skip
    assert (found["requests"]["finished"], found["requests"]["failed"]) == (2, 8)
    assert found["tokens_out"]["total"] == 6
    assert report["units"] == 2
    share = float(found["cost_of_failed"]) / float(report["cost"]["total"])
    assert 0.9 < share < 1


def test_what_a_server_does_not_count_is_not_known(ouvrage: Inside, tmp_path: Path) -> None:
    with serving(usage=False, warm_up=3) as model:
        _, report = replay(ouvrage, trace(tmp_path, (0, 5, 3), (0, 5, 4)), model.url)
    found = report["inference"]
    assert [len(body["prompt"].split()) for body in model.bodies[3:]] == [4, 4]
    assert found["tokens_in"]["total"] is None
    assert found["cost_per_million_tokens"]["in"] is None
    assert report["unknown"]["inference.tokens_in.total"] == "2 of 2 answers did not say"
    assert found["tokens_out"]["total"] == 7
    named = ouvrage("explain", "last:inference.tokens_out.total", "--json").json
    assert named["grade"] == "assumed"


def test_a_server_with_fewer_options_is_asked_with_fewer(ouvrage: Inside, tmp_path: Path) -> None:
    with serving(takes=frozenset(), completions=False, warm_up=7) as model:
        _, report = replay(ouvrage, trace(tmp_path, (0, 5, 3)), model.url)
    assert report["inference"]["load"]["endpoint"] == "/v1/chat/completions"
    assert model.bodies[-1].keys() == {"model", "max_tokens", "messages", "stream", "temperature"}
    assert report["inference"]["requests"]["finished"] == 1


def test_an_answer_in_one_piece_has_no_first_token(ouvrage: Inside, tmp_path: Path) -> None:
    with serving(stream=False) as model:
        _, report = replay(ouvrage, trace(tmp_path, (0, 5, 3)), model.url)
    found = report["inference"]
    assert found["tokens_out"]["total"] == 3
    assert found["first_token_s"] == {"samples": 0, "p50": None, "p95": None, "p99": None}


def test_a_key_is_sent_and_kept_nowhere(ouvrage: Inside, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-very-secret\n")
    with serving(key="sk-very-secret") as model:
        where = trace(tmp_path, (0, 5, 3))
        said = ouvrage("inference", "replay", where, "--server", model.url)
        assert (said.code, "error[inference/no-answer]" in said.err) == (2, True)
        code, _ = replay(ouvrage, where, model.url, "--api-key-file", str(tmp_path / "key"))
    assert code == 0
    ouvrage("runs")
    held = b"".join(path.read_bytes() for path in ouvrage.path.rglob("*") if path.is_file())
    assert b"sk-very-secret" not in held


def test_nothing_answered_fails_and_says_so(ouvrage: Inside, tmp_path: Path) -> None:
    with serving(faults={1: "500", 2: "500"}) as model:
        where = trace(tmp_path, (0, 5, 3), (0, 5, 3))
        said = ouvrage("inference", "replay", where, "--server", model.url, "--plain")
    assert said.code == 1
    assert said.first.startswith("Failed after")
    assert "No request was answered" in said.first


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--server", "127.0.0.1:8000"), "inference/server"),
        (("--server", "http://me:word@127.0.0.1"), "inference/key-in-address"),
        (("--server", "http://127.0.0.1:9"), "inference/no-server"),
        (("--server", "http://127.0.0.1:9", "--model", "m"), "inference/no-answer"),
        (("--server", "http://h", "--rate", "2", "--concurrency", "1"), "inference/two-paces"),
        (("--server", "http://h", "--speed-up", "0"), "inference/pace"),
        (("--server", "http://h", "--speed-up", "nan"), "inference/pace"),
        (("--server", "http://h", "--for", "soon"), "inference/duration"),
        (("--server", "http://h", "--timeout", "0s"), "inference/duration"),
        (("--server", "http://h", "--price", "2"), "price/no-unit"),
        (("--server", "http://h", "--currency", "EUR"), "run/currency-alone"),
        (("--server", "http://h", "--label", "last"), "run/label"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_written(
    ouvrage: Inside, tmp_path: Path, words: tuple[str, ...], code: str
) -> None:
    said = ouvrage("inference", "replay", trace(tmp_path, (0, 5, 3)), *words)
    assert (said.code, said.err.partition("]")[0]) == (2, f"error[{code}")
    assert not ouvrage.path.exists()


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    home = home_in(tmp_path, "home")
    with serving(faults={3: "hang"}) as model:
        where = trace(tmp_path, *((n / 100, 5, 3) for n in range(3)), (60, 5, 3))
        words = ("inference", "replay", where, "--server", model.url, "--price", "2/h", "--plain")
        running = home.start(*words, stdout=-1, stderr=-1)
        with model.arrived:
            assert model.arrived.wait_for(lambda: len(model.bodies) == 5, 30)
            assert model.arrived.wait_for(lambda: model.at_once == 1, 30)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert out.startswith("Interrupted after")
    report = home.inside("report", "last", "--json").json
    assert report["outcome"] == "interrupted"
    cut_short = report["inference"]["failures"]["cancelled"]
    assert cut_short in (1, 2)  # the client may not have read the last words of an answer
    assert report["inference"]["requests"]["finished"] == 3 - cut_short


def test_a_replay_that_was_killed_is_kept_as_lost(tmp_path: Path) -> None:
    home = home_in(tmp_path, "home")
    with serving() as model:
        rows = ((n / 20, 5, 3) for n in range(80))
        where = trace(tmp_path, *rows, (600, 5, 3))
        running = home.start("inference", "replay", where, "--server", model.url)
        with model.arrived:
            assert model.arrived.wait_for(lambda: len(model.bodies) >= 60, 30)
        running.kill()
        running.wait(30)
    report = home.inside("report", "last", "--json").json
    assert report["outcome"] == "lost"
    assert report["inference"]["requests"]["finished"] >= 20
    assert home.inside("verify").code == 0


@pytest.mark.skipif(DATA is None, reason="OUVRAGE_DATA is not set: no Azure trace to replay")
def test_the_first_requests_of_the_azure_trace(ouvrage: Inside) -> None:
    where = Path(DATA or "") / "azure_llm" / "AzureLLMInferenceTrace_code.csv"
    rows = [line.split(",") for line in where.read_text().splitlines()[1:301]]
    with serving() as model:
        code, report = replay(ouvrage, str(where), model.url, "--limit", "300", "--speed-up", "100")
    found = report["inference"]
    assert code == 0
    assert found["requests"]["finished"] == 300
    assert found["tokens_in"]["total"] == sum(int(row[1]) for row in rows)
    assert found["tokens_out"]["total"] == sum(int(row[2]) for row in rows)
    assert found["first_token_s"]["p99"] is not None
    assert found["load"]["trace"] == where.name
    assert ouvrage("verify").code == 0


def test_an_exchange_that_is_stopped_before_it_begins_ends(model: Model) -> None:
    endpoint = Endpoint(url=model.url, model="tiny")
    exchange = Exchange(endpoint, endpoint.body(1, 5, 5), 1_000_000, asked_out=5)
    exchange.stop("cancelled")
    exchange.run()
    assert (exchange.status, exchange.tokens_out) == ("cancelled", None)
    assert "key" not in repr(endpoint)
    assert sys.getsizeof(endpoint.body(1, 1000, 5)) > 3000

"""What a model server tells about itself: its metrics page, its log, and the figures made of both."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.serving_metrics import MetricsFault, reading_of
from ouvrage.base.errors import OuvrageError
from ouvrage.evidence.figures import Sheet
from ouvrage.meter.servers import columns_of
from ouvrage.metering.arrivals import Arrival, at_rate, read_arrivals, sped_up
from ouvrage.metering.recognise import Recogniser
from ouvrage.metering.serving import Within, bucket_quantile, quantile
from ouvrage.metering.spool import read_spool
from ouvrage.pricing.laws import cost_breaches
from ouvrage.pricing.report import report_json, report_text
from ouvrage.pricing.unit_cost import sheet_of
from tests.blackbox.home import home_in
from tests.support.model_server import serving
from tests.support.runs import Line, S, end, header, view_of, written

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
PRICE = {"amount": "3.6", "currency": "EUR", "per": "h"}  # a thousandth a second
BOUNDS = (100_000, 200_000, 400_000)


def server(**about: Any) -> Line:
    known = {"engine": "vLLM", "via": "metrics", "where": "http://h/metrics"}
    bounds = {"first_bounds_us": list(BOUNDS), "gap_bounds_us": [], "took_bounds_us": []}
    return {"k": "server", "server": 0, "t": 0, "about": {**known, **bounds, **about}}


def servers(times: list[int], **columns: list[int | None]) -> Line:
    return {"k": "servers", "server": 0, "t": [t * S for t in times], "c": columns}


def report(*lines: Line, seconds: int = 10) -> tuple[dict[str, Any], Sheet]:
    view = view_of(header(price=PRICE), *lines, end(seconds))
    sheet = sheet_of(view, 0)
    assert list(cost_breaches(view, sheet)) == []
    return report_json(view, sheet), sheet


class TestQuantiles:
    def test_of_values_by_their_rank(self) -> None:
        values = list(range(1, 101))
        assert [quantile(values, Fraction(n, 100)) for n in (50, 95, 99)] == [50, 95, 99]
        assert quantile([7], Fraction(1, 2)) == 7
        assert quantile(values[:19], Fraction(95, 100)) is None
        assert quantile([], Fraction(1, 2)) is None

    def test_of_buckets_with_their_ends(self) -> None:
        found = bucket_quantile(BOUNDS, (10, 10, 0, 0), Fraction(3, 4))
        assert found == Within(
            value=Fraction(150_000), low=Fraction(100_000), high=Fraction(200_000)
        )
        first = bucket_quantile(BOUNDS, (2, 0, 0, 0), Fraction(1, 2))
        assert first == Within(value=Fraction(50_000), low=Fraction(0), high=Fraction(100_000))
        assert bucket_quantile(BOUNDS, (0, 0, 0, 0), Fraction(1, 2)) is None
        assert bucket_quantile(BOUNDS, (5, 5, 5, 4), Fraction(95, 100)) is None

    def test_beyond_the_last_bucket_only_a_least_value_is_known(self) -> None:
        found = bucket_quantile(BOUNDS, (1, 0, 0, 9), Fraction(1, 2))
        assert found == Within(value=None, low=Fraction(400_000), high=None)


class TestMetrics:
    def test_a_run_with_metrics(self) -> None:
        told, sheet = report(
            server(),
            servers(
                list(range(11)),
                requests=[n * 2 for n in range(11)], aborted=[0] * 10 + [1],
                tokens_in=[n * 100 for n in range(11)], tokens_out=[n * 10 for n in range(11)],
                running=[4] * 11, waiting=[0] * 5 + [1] * 6,
                first_0=list(range(11)), first_1=[n * 2 for n in range(11)],
                first_2=[n * 2 for n in range(11)], first_3=[n * 2 for n in range(11)],
            ),
        )  # fmt: skip
        found = told["inference"]
        assert found["source"] == "metrics"
        assert (found["tokens_in"]["total"], found["tokens_out"]["total"]) == (1000, 100)
        assert (found["requests"]["finished"], found["requests"]["failed"]) == (20, 1)
        assert found["concurrency"] == {"mean": 4, "max": 4}
        assert found["waiting"]["mean"] == 0.6
        assert found["first_token_s"]["samples"] == 20
        ends = [found["first_token_s"][name] for name in ("p50", "p50_low", "p50_high")]
        assert ends == [0.1, 0.0, 0.1]
        assert found["first_token_s"]["p95_high"] == 0.2
        assert found["answer_s"]["p50"] is None
        assert float(found["cost_per_million_tokens"]["out"]) == 100  # 0.01 for 100 tokens
        assert float(found["cost_per_million_tokens"]["in"]) == 10
        assert sheet["inference.tokens_out.total"].grade.word == "metered"  # type: ignore[union-attr]  # known here
        assert sheet["inference.first_token_s.p50"].grade.word == "assumed"  # type: ignore[union-attr]  # known here

    def test_a_restart_is_a_gap_and_never_negative(self) -> None:
        told, _ = report(
            server(first_bounds_us=[]),
            servers(list(range(11)), tokens_in=[50] * 11,
                    tokens_out=[100, 110, 120, 0, 10, 20, 30, 40, 50, 60, 70]),
        )  # fmt: skip
        found = told["inference"]
        assert found["tokens_out"]["total"] == 90
        assert found["counted_s"] == 9
        assert float(found["cost_per_million_tokens"]["out"]) == 100
        assert found["first_token_s"]["p50"] is None

    def test_silence_is_a_gap_and_what_came_before_costs_its_own_time(self) -> None:
        told, _ = report(
            server(first_bounds_us=[]),
            servers([0, 1, 2, 8, 9, 10], tokens_out=[0, 10, 20, 500, 510, 520]),
        )  # fmt: skip
        assert told["inference"]["tokens_out"]["total"] == 40
        assert told["inference"]["counted_s"] == 4
        assert told["inference"]["tokens_in"]["total"] is None
        assert told["inference"]["cost_per_million_tokens"]["all"] is None

    def test_words_beside_a_histogram(self) -> None:
        view = view_of(
            header(price=PRICE), server(),
            servers([0, 1, 2], tokens_in=[0, 1, 2], tokens_out=[0, 1, 2], first_0=[0, 0, 0],
                    first_1=[0, 0, 0], first_2=[0, 0, 0], first_3=[0, 5, 9]),
            end(2),
        )  # fmt: skip
        said = report_text(view, sheet_of(view, 0), plain=True)
        assert "p50 more than 0.400 s, of 9" in said
        assert "vLLM: what the server's metrics count" in said

    def test_pages_of_servers(self) -> None:
        page = (
            'vllm:prompt_tokens_total{engine="0"} 1.5e3\nvllm:prompt_tokens_total{engine="1"} 5 17\n'
            'vllm:request_success_total{finished_reason="length"} 3.0\n'
            'vllm:request_success_total{finished_reason="abort"} 2.0\n'
            'vllm:time_per_output_token_seconds_bucket{le="0.01"} 1.0\n'
            'vllm:time_per_output_token_seconds_bucket{le="+Inf"} 4.0\nvllm:num_requests_running NaN\n'
        )
        reading = reading_of(page)
        assert reading.engine == "vLLM"
        assert reading.columns == {
            "tokens_in": 1505, "requests": 3, "aborted": 2, "gap_0": 1, "gap_1": 4
        }  # fmt: skip
        assert reading.bounds_us == {"first": (), "gap": (10_000,), "took": ()}
        other = reading_of("llamacpp:tokens_predicted_total 7\nllamacpp:requests_processing 2\n")
        assert (other.engine, other.columns) == ("llama.cpp", {"tokens_out": 7, "running": 2})
        for strange in ("", "<html>", "python_gc_objects_collected_total 5\n"):
            with pytest.raises(MetricsFault):
                reading_of(strange)

    @pytest.mark.parametrize(
        "line",
        [
            {"k": "servers", "server": 1, "t": [1], "c": {}},
            server(via="guess"),
            server(first_bounds_us=[5, 5]),
            {"k": "requests", "via": "replay", "c": {"status": ["ok"]}},
            {"k": "load", "about": {}},
        ],
    )
    def test_lines_that_cannot_be_are_refused_by_number(self, line: Line) -> None:
        with pytest.raises(OuvrageError) as refused:
            read_spool(written(header(), line, end(3)))
        assert (refused.value.code, "line 2" in refused.value.message) == ("spool/line", True)


@settings(max_examples=150, deadline=None)
@given(
    st.text(alphabet=st.sampled_from('vllm:tokens_oaled{}="+Inf 0123456789.e-\n\\#'), max_size=300)
)
def test_no_page_makes_the_reader_fail(text: str) -> None:
    for page in (
        text,
        f"vllm:generation_tokens_total 1\nvllm:time_to_first_token_seconds_bucket{text}",
    ):
        try:
            reading = reading_of(page)
        except MetricsFault:
            continue
        assert all(value >= 0 for value in reading.columns.values())


class TestLogs:
    def told(self, name: str, every: int = S) -> Recogniser:
        recogniser = Recogniser(None, None)
        for number, line in enumerate((LOGS / name).read_bytes().splitlines(keepends=True), 1):
            recogniser.feed("stderr", line, number * every)
        return recogniser

    @pytest.mark.parametrize(
        ("name", "rows"),
        [
            ("llama.cpp-server.txt", [(13, 64, 61_200, 1_295_760), (4, 30, 20_100, 620_100)]),
            ("llama.cpp.txt", [(5, 24, 330_810, 356_410), (5, 27, 323_010, 328_560)]),
        ],
    )
    def test_llama_cpp_tells_of_each_request(
        self, name: str, rows: list[tuple[int, int, int, int]]
    ) -> None:
        found = columns_of(self.told(name).serving.requests())
        names = ("tokens_in", "tokens_out", "first_us", "took_us")
        assert list(zip(*(found[name] for name in names), strict=True)) == rows
        assert found["last_us"][0] == rows[0][2] + (1_234_560 if "server" in name else 10_080)
        line: Line = {"k": "requests", "via": "log", "c": found}
        told, _ = report(line)
        assert told["inference"]["source"] == "log"
        assert told["inference"]["tokens_out"]["total"] == sum(row[1] for row in rows)
        assert told["inference"]["concurrency"]["max"] is None

    def test_vllm_tells_rates_and_requests_in_flight(self) -> None:
        readings = self.told("vllm-serve.txt", every=10 * S).serving.readings()
        tokens = [columns["tokens_out"] for _, columns in readings]
        assert tokens[-1] == 659
        assert [columns["tokens_in"] for _, columns in readings][-1] == 57
        assert max(columns["running"] for _, columns in readings) == 1
        times = [t for t, _ in readings]
        assert times == sorted(set(times))
        lines = {"k": "servers", "server": 0, "t": times,
                 "c": {name: [c[name] for _, c in readings] for name in readings[0][1]}}  # fmt: skip
        told, _ = report(server(via="log", first_bounds_us=[]), lines, seconds=200)
        assert told["inference"]["tokens_out"]["total"] == 659
        assert told["unknown"]["inference.first_token_s.p50"].endswith("add --metrics URL")

    def test_lines_in_one_read_are_counted_without_a_moment(self) -> None:
        recogniser = Recogniser(None, None)
        recogniser.feed("stderr", (LOGS / "llama.cpp-server.txt").read_bytes(), S)
        assert [row["tokens_out"] for row in recogniser.serving.requests()] == [64, 30]


class TestTraces:
    def test_forms(self) -> None:
        azure = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:17:03.9799600,4808,10",
                 "2023-11-16 18:17:04.0319605,3180,8"]  # fmt: skip
        own = ["at_s,tokens_in,tokens_out", "7.5,4808,10", "7.552,3180,8"]
        lines = ['{"at_s": 1.5, "tokens_in": 4808, "tokens_out": 10}',
                 '{"at_s": 1.552, "tokens_in": 3180, "tokens_out": 8}']  # fmt: skip
        wanted = [Arrival(at_us=0, tokens_in=4808, tokens_out=10),
                  Arrival(at_us=52_000, tokens_in=3180, tokens_out=8)]  # fmt: skip
        assert [read_arrivals(form, "t") for form in (azure, own, lines)] == [wanted] * 3
        assert [a.at_us for a in sped_up(wanted, Fraction(4))] == [0, 13_000]

    def test_a_rate_is_kept_on_average_and_is_the_same_again(self) -> None:
        many = [Arrival(at_us=0, tokens_in=1, tokens_out=1)] * 2000
        due = at_rate(many, Fraction(10))
        assert due == at_rate(many, Fraction(10))
        assert 180 < due[-1].at_us / S < 220

    @pytest.mark.parametrize(
        ("row", "found"),
        [
            ("2023-11-16 18:17:03,x,1", "'x' where a number of tokens"),
            ("2023-11-16 18:17:03,1,-1", "'-1' where a number of tokens"),
            ("yesterday,1,1", "'yesterday' where a moment"),
            ("2023-11-16 18:17:03,1", "2 fields where 3"),
        ],
    )
    def test_a_row_that_cannot_be_read_is_named(self, row: str, found: str) -> None:
        lines = ["TIMESTAMP,ContextTokens,GeneratedTokens", "2023-11-16 18:17:03,1,1", row]
        with pytest.raises(OuvrageError) as refused:
            read_arrivals(lines, "azure.csv")
        assert refused.value.code == "trace/row"
        assert found in refused.value.message
        assert refused.value.where[0].startswith("azure.csv:3 ")

    @pytest.mark.parametrize(
        ("lines", "code"),
        [
            ([], "empty"),
            (["at_s,tokens_in,tokens_out"], "empty"),
            (["a,b"], "columns"),
            (["{}"], "row"),
        ],
    )
    def test_a_file_without_requests_is_refused(self, lines: list[str], code: str) -> None:
        with pytest.raises(OuvrageError) as refused:
            read_arrivals(lines, "f")
        assert refused.value.code == f"trace/{code}"


SERVE = """
import sys, urllib.request
for n in range(3):
    body = b'{"prompt": "a b c", "max_tokens": 4, "stream": true, "stream_options": {}}'
    asked = urllib.request.Request(sys.argv[1] + "/v1/completions", data=body)
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(asked).read()
print("served", flush=True)
sys.stdin.read()
"""


def test_a_command_with_metrics(tmp_path: Path) -> None:
    home = home_in(tmp_path, "home")
    with serving(warm_up=0) as model:
        words = ("--metrics", f"{model.url}/metrics", "--price", "2/h", "--plain")
        command = (sys.executable, "-c", SERVE, model.url)
        running = home.start("run", *words, "--", *command, stdin=-1, stdout=-1, stderr=-1)
        assert running.stdout and running.stdin
        assert running.stdout.readline() == "served\n"
        with model.arrived:
            assert model.arrived.wait_for(lambda: model.read >= 1, 30)
            model.counts.update({"in": 12, "out": 30, "done": 5})
            seen = model.read
            assert model.arrived.wait_for(lambda: model.read >= seen + 2, 30)
        _, err = running.communicate(timeout=30)
    assert running.returncode == 0, err
    assert "vLLM: what the server's metrics count" in err
    found = home.inside("report", "last", "--json").json["inference"]
    assert found["tokens_out"]["total"] in (
        30,
        42,
    )  # what came before the first reading is not seen
    assert found["requests"]["finished"] in (5, 8)
    assert home.inside("verify").code == 0


def test_metrics_that_never_answer_are_a_note_and_nothing_else(tmp_path: Path) -> None:
    home = home_in(tmp_path, "home")
    said = home("run", "--metrics", "http://127.0.0.1:9/metrics", "--", "sleep", "1.2")
    assert said.code == 0
    assert "metrics/never" in said.err
    assert home.inside("report", "last", "--json").json["inference"] is None
    for text in ("127.0.0.1:9/metrics", "http://me:word@h/metrics"):
        refused = home("run", "--metrics", text, "--", "true")
        assert (refused.code, "error[run/metrics]" in refused.err) == (2, True)

"""From an empty home to what a million tokens cost, with the load beside it, and where that comes from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.home import Home, home_in
from tests.blackbox.test_every_figure import numbers
from tests.support.model_server import serving

ROWS = [(n / 20, 20 + n, 4) for n in range(24)]
ROUGH = re.compile(r"[0-9][0-9.]*(?:e-[0-9]+)?")


def trace(tmp_path: Path) -> str:
    path = tmp_path / "evening.csv"
    rows = "".join(f"{at},{into},{out}\n" for at, into, out in ROWS)
    path.write_text(f"at_s,tokens_in,tokens_out\n{rows}")
    return str(path)


def shape(text: str) -> list[str]:
    """The lines of an answer with every number as ``N``: what varies is only how much."""
    return [ROUGH.sub("N", line).rstrip() for line in text.splitlines()]


def test_from_an_empty_home_to_a_million_tokens(ouvrage: Home, tmp_path: Path) -> None:
    with serving(pace_s=0.002, faults={5: "429"}) as model:
        words = ("inference", "replay", trace(tmp_path), "--server", model.url, "--price", "2/h")
        said = ouvrage(*words, "--label", "evening", "--plain")
        assert said.code == 0, said.err
        fast = ouvrage(*words, "--label", "dense", "--speed-up", "4")
        assert fast.code == 0
    lines = shape(said.out)
    assert lines[0] == (
        "A million tokens out cost N EUR (assumed) all-in, or a million in N EUR (assumed), "
        "at N requests/s with N in flight; first token after N s (measured) (pN N)."
    )
    assert "  load                  evening.csv, the trace's moments x N; N (measured) requests answered, N/s; N (measured) in flight on average (most N)" in lines  # fmt: skip
    assert "  tokens                N (metered) in (N/s, pN N pN N a request); N (metered) out (N/s, pN N pN N a request); N of those in came from its cache" in lines  # fmt: skip
    assert "  not answered          N of N: N refused; their share of the time cost N EUR (assumed)" in lines  # fmt: skip
    assert lines[-1].endswith("inference.cost_per_million_tokens.out")
    assert any(line.startswith("  this client           ") for line in lines)

    report: dict[str, Any] = ouvrage("report", "evening", "--json").json
    found = report["inference"]
    answered = [row for number, row in enumerate(ROWS, 1) if number != 5]
    assert found["tokens_in"]["total"] == sum(into for _, into, _ in answered)
    assert found["tokens_out"]["total"] == 4 * 23
    assert (report["unit"], report["units"]) == ("request", 23)
    assert found["steady"]["tokens_out"] < found["tokens_out"]["total"]
    assert found["steady"]["cost_per_million_tokens"]["out"] is not None
    dense = ouvrage("report", "dense", "--json").json["inference"]
    assert float(dense["cost_per_million_tokens"]["out"]) < float(
        found["cost_per_million_tokens"]["out"]
    )
    _numbers_are_explained(ouvrage, report)

    page = tmp_path / "evening.html"
    assert ouvrage("report", "evening", "--html", str(page)).code == 0
    text = page.read_text()
    assert "Cost of a million tokens out" in text
    assert "Requests in flight" in text
    assert "Cores at work" not in text
    compared = ouvrage("compare", "evening", "dense", "--json").json["comparison"]
    assert compared["speed_up"] > 1.5
    assert "the loads differ" in ouvrage("compare", "evening", "dense").out
    assert ouvrage("verify").code == 0
    _travels(ouvrage, tmp_path, found)


def _numbers_are_explained(home: Home, report: dict[str, Any]) -> None:
    found = list(numbers({"inference": report["inference"]}))
    assert len(found) > 40
    for path, value in found[::5]:
        name = f"{report['code']}:{path}"
        explained = home.inside("explain", name, "--json").json
        assert float(explained["value"]) == pytest.approx(float(value), abs=5.1e-7), name
        assert explained["missing"] == []
    words = home.inside("explain", f"{report['code']}:inference.cost_per_million_tokens.out").out
    assert "alone carries the whole cost" in words
    assert "run.requests" in words
    source = home.inside("explain", f"{report['code']}:inference.load.pace")
    assert "the trace's moments x 1" in source.out


def _travels(home: Home, tmp_path: Path, found: dict[str, Any]) -> None:
    carried = tmp_path / "run.ouvrage"
    assert home("run", "export", "evening", str(carried)).code == 0
    elsewhere = home_in(tmp_path, "elsewhere")
    assert elsewhere("run", "import", str(carried)).code == 0
    assert elsewhere("report", "evening", "--json").json["inference"] == found

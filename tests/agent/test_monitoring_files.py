"""The files for Prometheus and Alertmanager, by the programs that read them: which alert comes of a page, with which runbook."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from ouvrage.agent.probing.exposition import page_of
from ouvrage.base.time import SECOND
from ouvrage.model.health import ACTIONS, CRITICAL
from tests.agent.test_alerts import check, view

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "deploy" / "monitoring"


def _said(program: str, package: str, *words: str) -> str:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not here (Debian: {package})")
    done = subprocess.run([found, *words], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _series(name: str, **labels: str) -> str:
    return name + "{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}"


def _rules_say(
    tmp_path: Path, series: Sequence[tuple[str, str]], alert: str, at: str, **labels: str
) -> None:
    """``promtool``'s own trial of the rules: with these series exactly this alert, or none where no label is given."""
    name = _series("ALERTS", alertname=alert, alertstate="firing", **labels)
    expected = [{"labels": name, "value": 1}] if labels else []
    firing = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    trial = {
        "rule_files": [str(MONITORING / "ouvrage-rules.yml")],
        "tests": [{
            "interval": "15s",
            "input_series": [{"series": name, "values": values} for name, values in series],
            "promql_expr_test": [{"expr": firing, "eval_time": at, "exp_samples": expected}],
        }],
    }  # fmt: skip
    file = tmp_path / "trial.yml"
    file.write_text(json.dumps(trial))  # JSON is YAML
    assert "SUCCESS" in _said("promtool", "prometheus", "test", "rules", str(file))


def test_the_files_are_what_their_programs_read() -> None:
    words = _said("promtool", "prometheus", "check", "rules", str(MONITORING / "ouvrage-rules.yml"))
    assert "7 rules found" in words
    words = _said(
        "amtool", "prometheus-alertmanager", "check-config", str(MONITORING / "alertmanager.yml")
    )
    assert "2 inhibit rules" in words


@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_leads_to_a_page_that_there_is(action: str) -> None:
    page = page_of(view(replace(check(CRITICAL), action=action)), 0, 0)
    (line,) = [each for each in page.splitlines() if each.startswith("ouvrage_node_check_info{")]
    runbook = line.partition('runbook="')[2].partition('"')[0]
    assert (ROOT / "docs" / "runbooks" / f"{runbook}.md").exists()


def test_how_old_the_view_is_does_not_hang_on_the_wall_s_clock() -> None:
    seen = view(at_us=2_000_000_000 * SECOND)  # a clock that was set
    page = page_of(seen, 0, seen.monotonic_us + 90 * SECOND)
    assert 'ouvrage_agent_view_age_seconds{node="n1"} 90' in page.splitlines()


def test_a_machine_that_does_not_answer_wakes_somebody(tmp_path: Path) -> None:
    down = [(_series("up", job="ouvrage", instance="a"), "1x4 0x20")]
    _rules_say(
        tmp_path, down, "OuvrageNodeDown", "4m", severity="critical", job="ouvrage", instance="a"
    )


def test_a_watch_that_hangs_is_silent_though_its_heart_beats(tmp_path: Path) -> None:
    beats = (_series("ouvrage_agent_heartbeat_age_seconds", instance="a"), "2x40")
    hangs = (_series("ouvrage_agent_view_age_seconds", instance="a", node="n1"), "0+15x40")
    well = (_series("ouvrage_agent_view_age_seconds", instance="a", node="n1"), "2x40")
    _rules_say(tmp_path, [beats, well], "OuvrageWatchSilent", "4m")
    told = {"severity": "critical", "instance": "a", "node": "n1"}
    _rules_say(tmp_path, [beats, hangs], "OuvrageWatchSilent", "4m", **told)

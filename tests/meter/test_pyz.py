"""The meter as one file, on the oldest Python it promises to run on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ouvrage.metering.exchange import read_export
from tests.support.meter import Meter

ROOT = Path(__file__).resolve().parents[2]


def old_python() -> str | None:
    """A Python 3.10 on this machine."""
    found = shutil.which("python3.10")
    places = [Path(found)] if found else []
    places += sorted(Path.home().glob(".pyenv/versions/3.10.*/bin/python3"))
    for place in places:
        done = subprocess.run([place, "--version"], capture_output=True, check=False)
        if done.stdout.startswith(b"Python 3.10"):
            return str(place)
    return None


@pytest.fixture(scope="module")
def single_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist") / "ouvrage.pyz"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "pyz.py", target], check=True, capture_output=True
    )
    return target


@pytest.fixture(params=["this", "3.10"])
def python(request: pytest.FixtureRequest) -> str:
    if request.param == "this":
        return sys.executable
    found = old_python()
    if found is None:
        pytest.skip("no Python 3.10 here")
    return found


def call(
    python: str, file: Path, home: Path, *words: str, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {"OUVRAGE_HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return subprocess.run(
        [python, "-S", "-E", str(file), *words],
        env=environment, capture_output=True, text=True, check=False, cwd=cwd, timeout=60,
    )  # fmt: skip


def test_it_runs_reports_and_hands_on(python: str, single_file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = "for i in 1 2 3; do echo Epoch $i/3 loss; sleep 0.1; done; exit 5"
    done = call(
        python, single_file, home, "run", "--price", "0.30/h", "--report", "r.json", "--",
        "sh", "-c", lines, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 5
    assert done.stdout == "Epoch 1/3 loss\nEpoch 2/3 loss\nEpoch 3/3 loss\n"
    assert "epoch" in done.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["units"], report["outcome"]) == (3, "failed")
    done = call(
        python, single_file, home, "run", "export", report["code"], str(tmp_path / "run.gz")
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_any_command_can_be_handed_on(single_file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    odd = "a\u2028b\x85c\x1cd\x0be"  # each ends a line for somebody
    call(sys.executable, single_file, home, "run", "--quiet", "--", "echo", odd, cwd=tmp_path)
    done = call(sys.executable, single_file, home, "run", "export", "last", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*.ouvrage")
    started = read_export(file.read_bytes()).facts[0]
    assert json.loads(started.payload)["command"] == ["echo", odd]


def test_its_terminal_signals_and_client_work_on_the_oldest_python(
    python: str, tmp_path: Path
) -> None:
    meter = Meter(tmp_path / "home", python)
    program = tmp_path / "program.py"
    program.write_text(
        "import ouvrage, time\n"
        "for n in ouvrage.watch(range(3)):\n"
        "    with ouvrage.span('x'): time.sleep(0.01)\n"
        "    ouvrage.unit('step')\n"
    )
    assert meter.run(python, str(program)).returncode == 0
    assert len(meter.units()) == 3
    assert meter.run("sh", "-c", "kill -TERM $$").returncode == -15


def test_the_same_sources_give_the_same_file(single_file: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.pyz"
    subprocess.run(
        [sys.executable, ROOT / "tools" / "pyz.py", again], check=True, capture_output=True
    )
    assert again.read_bytes() == single_file.read_bytes()


def test_other_verbs_say_what_is_missing(single_file: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = call(sys.executable, single_file, home, "report", "last")
    assert done.returncode == 2
    assert "error[command/not-here]" in done.stderr
    assert "hint:" in done.stderr
    assert call(sys.executable, single_file, home, "--version").stdout.startswith("ouvrage ")
    assert "run export" in call(sys.executable, single_file, home, "--help").stdout
    done = call(sys.executable, single_file, home, "run", "export", "last", "file")
    assert (done.returncode, home.exists()) == (2, False)
    assert "error[run/unknown]" in done.stderr

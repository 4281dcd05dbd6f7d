"""Any framework's program under ``ouvrage run``: its units are found, chosen, told and logged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Home

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
REPLAY = """
import sys, time
data = open(sys.argv[1], "rb").read()
lines = data.splitlines(keepends=True)
for line in lines:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    time.sleep(0.6 / len(lines))
"""
RANKS = """
import subprocess, sys
code = "for e in range(1, 5): print(f'Epoch {e}/4 loss 0.1')"
for rank in [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]:
    rank.wait()
"""
MARKING = """
import os, sys, time
import ouvrage
pids = [os.fork() for _ in range(2)]  # four processes in all
for epoch in range(4):
    time.sleep(0.2)
    ouvrage.unit("epoch")
if all(pids):
    for pid in pids:
        os.waitpid(pid, 0)
else:
    sys.exit()
"""
LIBRARY = """
import json
import subprocess
class SummaryWriter:
    def __init__(self, folder): self.folder, self.told = folder, {}
    def add_scalar(self, name, value, step): self.told[name] = [value, step]
    def close(self): json.dump([self.folder, self.told], open("told.json", "w"))
"""


@pytest.fixture
def replay(tmp_path: Path) -> Path:
    script = tmp_path / "replay.py"
    script.write_text(REPLAY)
    return script


@pytest.mark.parametrize(
    ("log", "unit", "number"),
    [
        ("ultralytics-8.4", "epoch", 3),
        ("keras", "epoch", 3),
        ("lightning-tqdm", "epoch", 3),
        ("transformers", "epoch", 3),
        ("deepspeed", "step", 20),
        ("ffmpeg", "frame", 50),
        ("blender-4.5", "frame", 3),
        ("llama.cpp", "request", 2),
        ("vllm-serve", "request", 3),
        ("comfyui", "prompt", 3),
    ],
)
def test_what_a_tool_prints_is_counted(
    ouvrage: Home, tmp_path: Path, replay: Path, log: str, unit: str, number: int
) -> None:
    command = [sys.executable, str(replay), str(LOGS / f"{log}.txt")]
    said = ouvrage("run", "--price", "1/h", "--report", "r.json", "--quiet", "--", *command)
    assert said.code == 0, said.err
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["unit"], report["units"]) == (unit, number)
    assert said.out.encode() == (LOGS / f"{log}.txt").read_bytes().replace(b"\r\n", b"\n").replace(
        b"\r", b"\n"
    )  # text mode; byte for byte is tested with the meter


def test_several_kinds_are_told_and_one_may_be_asked_for(
    ouvrage: Home, tmp_path: Path, replay: Path
) -> None:
    command = [sys.executable, str(replay), str(LOGS / "transformers.txt")]
    said = ouvrage("run", "--", *command)
    assert "left aside: iteration (tqdm): 24" in said.err
    assert "--unit iteration counts another" in said.err
    said = ouvrage("run", "--unit", "steps", "--report", "r.json", "--", *command)
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["unit"], report["units"]) == ("iteration", 24)
    assert "left aside: epoch (transformers): 3" in said.err


def test_what_runs_backwards_is_told(ouvrage: Home, tmp_path: Path) -> None:
    (tmp_path / "enc.py").write_text(
        "for n in (10, 60, 40, 80): print(f'frame={n:5} fps= 25 q=-1.0 size=N/A')"
    )
    said = ouvrage("run", "--report", "r.json", "--", sys.executable, "enc.py")
    assert json.loads((tmp_path / "r.json").read_text())["units"] == 80
    assert "unit/backwards: frame: 1 lines ran backwards and were not counted" in said.err


def _launcher(tmp_path: Path, code: str) -> list[str]:
    """A program that goes by the name of a launcher of ranks."""
    script = tmp_path / "torchrun"
    script.write_text(f"#!{sys.executable}\n{code}")
    script.chmod(0o755)
    return [str(script)]


def test_ranks_that_print_the_same_epochs_are_one(ouvrage: Home, tmp_path: Path) -> None:
    said = ouvrage("run", "--report", "r.json", "--", *_launcher(tmp_path, RANKS))
    assert json.loads((tmp_path / "r.json").read_text())["units"] == 4
    assert "more ranks of torchrun printed the same epochs" in said.err


def test_ranks_that_mark_the_same_epochs_are_one(ouvrage: Home, tmp_path: Path) -> None:
    said = ouvrage("run", "--report", "r.json", "--", *_launcher(tmp_path, MARKING))
    assert said.code == 0
    assert json.loads((tmp_path / "r.json").read_text())["units"] == 4
    assert "4 ranks of torchrun marked the same epochs" in said.err


class TestLogTo:
    def test_a_library_that_is_not_known_is_refused_before_anything_starts(
        self, ouvrage: Home
    ) -> None:
        said = ouvrage("run", "--log-to", "comet", "--", "true")
        assert said.code == 2
        assert said.err.startswith("error[run/log-to]")
        assert "hint: one of mlflow, wandb, tensorboard, clearml" in said.err
        assert not ouvrage.path.exists()

    def test_the_figures_reach_the_library_of_the_commands_own_python(
        self, ouvrage: Home, tmp_path: Path, replay: Path
    ) -> None:
        (tmp_path / "tensorboardX.py").write_text(LIBRARY)
        log = str(LOGS / "blender-4.5.txt")
        said = ouvrage(
            "run", "--price", "1/h", "--log-to", "tensorboard=logs/a", "--report", "r.json",
            "--", sys.executable, str(replay), log,
        )  # fmt: skip
        assert "logged to tensorboard: logs/a" in said.err
        folder, told = json.loads((tmp_path / "told.json").read_text())
        report = json.loads((tmp_path / "r.json").read_text())
        assert folder == "logs/a"
        value, step = told["ouvrage/cost_per_frame"]
        assert value == pytest.approx(float(report["cost_per_unit"]["marginal"]))
        assert step == report["units"] == 3
        assert "ouvrage/seconds_per_frame" in told

    def test_a_report_that_was_kept_can_be_logged_later(
        self, ouvrage: Home, tmp_path: Path, replay: Path
    ) -> None:
        (tmp_path / "tensorboardX.py").write_text(LIBRARY)
        log = str(LOGS / "blender-4.5.txt")
        ouvrage("run", "--quiet", "--report", "r.json", "--", sys.executable, str(replay), log)
        words = [sys.executable, "-m", "ouvrage.integrations", "tensorboard=x", "r.json"]
        sent = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert (sent.returncode, sent.stdout) == (0, "x\n"), sent.stderr
        assert "ouvrage/cost_per_frame" not in (tmp_path / "told.json").read_text()

    def test_what_cannot_be_logged_is_a_warning_and_the_exit_code_stays(
        self, ouvrage: Home, tmp_path: Path
    ) -> None:
        (tmp_path / "mlflow.py").write_text("raise RuntimeError('broken installation')")
        said = ouvrage("run", "--log-to", "mlflow", "--", sys.executable, "-c", "exit(7)")
        assert said.code == 7
        assert "warning[log/mlflow]: nothing was logged" in said.err
        assert "broken installation" in said.err

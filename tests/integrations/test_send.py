"""A report's figures reach each tracking library, really installed, and nothing else happens.

The libraries are no dependency: they are taken from the Python that OUVRAGE_TOOLS_PYTHON names,
else from the one that runs the tests, and a test is skipped where its library is not there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ouvrage.integrations import send as sender

TOOLS = os.environ.get("OUVRAGE_TOOLS_PYTHON") or sys.executable
SOURCE = Path(sender.__file__).read_text("utf-8")
REPORT = {
    "code": "R7K2", "label": "baseline", "unit": "epoch", "units": 6, "outcome": "completed",
    "started": "2026-11-30T14:05:09Z", "ended": "2026-11-30T14:05:39Z", "wall_s": 30.0,
    "grade": "assumed", "price": {"amount": "1", "currency": "EUR", "per": "h"},
    "cost": {"total": "0.00833"},
    "cost_per_unit": {"marginal": "0.0013", "all_in": "0.0014", "low": None, "high": None},
    "seconds_per_unit": {"median": 4.7, "low": 4.6, "high": 4.8},
}  # fmt: skip
NAMES = {
    "ouvrage/cost_per_epoch", "ouvrage/cost_per_epoch_all_in", "ouvrage/cost_total",
    "ouvrage/seconds_per_epoch", "ouvrage/epochs", "ouvrage/wall_s",
}  # fmt: skip


@cache
def _has(module: str) -> bool:
    words = [TOOLS, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec({module!r}))"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def needs(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        not _has(module), reason=f"{module} is not installed; set OUVRAGE_TOOLS_PYTHON"
    )


Send = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def send(tmp_path: Path) -> Send:
    def run(name: str, where: str = "", report: Any = REPORT, **more: str) -> Any:
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH",)}
        environment |= {
            "HOME": str(tmp_path), "WANDB_MODE": "offline", "CLEARML_OFFLINE_MODE": "1",
            "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db", "WANDB_SILENT": "true",
        } | more  # fmt: skip
        return subprocess.run(
            [TOOLS, "-c", SOURCE, name, where], input=json.dumps(report), cwd=tmp_path,
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run


def there(code: str, cwd: Path) -> Any:
    """What a program of the library's own reads back."""
    environment = os.environ | {"MLFLOW_TRACKING_URI": f"sqlite:///{cwd}/mlflow.db"}
    done = subprocess.run(
        [TOOLS, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def test_what_is_not_known_is_left_out() -> None:
    free = REPORT | {"price": None, "cost": {"total": None}}
    free["cost_per_unit"] = {"marginal": None, "all_in": None}
    assert sender.metrics_of(free).keys() == {n for n in NAMES if "cost" not in n}
    assert "ouvrage.currency" not in sender.texts_of(free)
    assert sender.metrics_of(REPORT)["ouvrage/cost_per_epoch"] == 0.0013


def test_a_units_name_becomes_a_word() -> None:
    assert "ouvrage/cost_per_big_image" in sender.metrics_of(REPORT | {"unit": "big image"})


def test_a_library_that_is_not_there_is_told_apart(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-c", SOURCE, "mlflow", ""], input=json.dumps(REPORT),
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip
    assert done.returncode == sender.NOT_IMPORTABLE
    assert "mlflow cannot be imported by" in done.stderr
    assert not done.stdout


@needs("mlflow")
class TestMlflow:
    MAKE = (
        "import mlflow, json; r = mlflow.start_run(); mlflow.log_metric('loss', 1);"
        "mlflow.end_run(); i = mlflow.get_run(r.info.run_id).info;"
        "print(json.dumps([i.run_id, i.start_time, i.end_time]))"
    )
    READ = (
        "import mlflow, json; r = mlflow.MlflowClient().search_runs(['0']);"
        "print(json.dumps([[x.info.run_id, x.info.status, x.info.end_time, x.data.metrics,"
        " x.data.tags] for x in r]))"
    )

    def test_a_run_of_its_own(self, send: Send, tmp_path: Path) -> None:
        done = send("mlflow")
        assert done.returncode == 0, done.stderr
        ((run, status, _, metrics, tags),) = there(self.READ, tmp_path)
        assert done.stdout.splitlines()[-1] == f"ouvrage-logged: run {run}"
        assert (status, metrics.keys()) == ("FINISHED", NAMES)
        assert metrics["ouvrage/cost_per_epoch"] == 0.0013
        assert tags["ouvrage.currency"] == "EUR"
        assert tags["mlflow.runName"] == "baseline"

    def test_the_run_that_the_command_made_receives_them_and_keeps_its_end(
        self, send: Send, tmp_path: Path
    ) -> None:
        run, start, finish = there(self.MAKE, tmp_path)
        stamp = (
            "import datetime as d, sys, json; print(json.dumps([d.datetime.fromtimestamp("
            f"x / 1000, d.timezone.utc).isoformat().replace('+00:00', 'Z') for x in ({start}, {finish})]))"
        )
        started, ended = there(stamp, tmp_path)
        done = send("mlflow", report=REPORT | {"started": started, "ended": ended})
        assert done.returncode == 0, done.stderr
        ((found, status, end, metrics, _),) = there(self.READ, tmp_path)
        assert (found, status, end) == (run, "FINISHED", finish)
        assert metrics.keys() == NAMES | {"loss"}


@needs("wandb")
def test_wandb_offline(send: Send, tmp_path: Path) -> None:
    done = send("wandb")
    assert done.returncode == 0, done.stderr
    (kept,) = (tmp_path / "wandb").glob("offline-run-*")
    (data,) = kept.glob("*.wandb")
    assert b"ouvrage/cost_per_epoch" in data.read_bytes()
    assert str(kept) in done.stdout.splitlines()[-1]


@needs("tensorboard")
@pytest.mark.parametrize("where", ["", "logs/mine"])
def test_tensorboard(send: Send, tmp_path: Path, where: str) -> None:
    done = send("tensorboard", where)
    assert done.returncode == 0, done.stderr
    folder = where or "runs/ouvrage-R7K2"
    assert done.stdout.splitlines()[-1] == f"ouvrage-logged: {folder}"
    read = (
        "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator as E;"
        f"import json; e = E({folder!r}); e.Reload();"
        "print(json.dumps({t: [(x := e.Scalars(t)[0]).step, float(x.value)] for t in e.Tags()['scalars']}))"
    )
    scalars = there(read, tmp_path)
    assert scalars.keys() == NAMES
    assert scalars["ouvrage/cost_per_epoch"] == [6, pytest.approx(0.0013)]


@needs("clearml")
def test_clearml_offline(send: Send, tmp_path: Path) -> None:
    done = send("clearml")
    assert done.returncode == 0, done.stderr
    (session,) = tmp_path.rglob("offline-*.zip")
    with zipfile.ZipFile(session) as archive:
        told = b"".join(archive.read(name) for name in archive.namelist())
    assert b"cost_per_epoch" in told
    assert session.stem in done.stdout.splitlines()[-1]

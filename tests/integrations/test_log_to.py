"""A tracking library that leaves a service behind, hangs or raises: the command's end is not held up."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ouvrage.meter import log_to

SERVICE = "import subprocess\nheld = subprocess.Popen(['sleep', '20'])\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(log_to, "PATIENCE_S", 5)
    return tmp_path / "mlflow.py"


def warned(capfd: pytest.CaptureFixture[str]) -> str:
    log_to.log_to("mlflow", '{"unit": "epoch"}', [sys.executable], quiet=False)
    return capfd.readouterr().err


def test_a_service_that_keeps_the_output_open_is_not_waited_for(
    library: Path, capfd: pytest.CaptureFixture[str]
):
    library.write_text(SERVICE + "raise ValueError('no server')\n")
    assert "ValueError: no server" in warned(capfd)


def test_a_library_that_hangs_is_given_up(
    library: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_to, "PATIENCE_S", 0.5)
    library.write_text(SERVICE + "held.wait()\n")
    assert "no answer within 0.5 s" in warned(capfd)

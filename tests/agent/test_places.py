"""A place as its batch job holds it and as the runner sees it: the very script that Slurm is handed, without a Slurm."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters.clock import new_id
from ouvrage.agent.bell import Bell
from ouvrage.agent.places import Places
from ouvrage.base.errors import OuvrageError
from ouvrage.wire.places import attempt_named, name_of, script_of
from tests.support.meter import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "places").mkdir(mode=0o755)
    return tmp_path / "places"


@pytest.fixture
def places(root: Path) -> Iterator[Places]:
    made = Places(root, "n1")
    yield made
    made.close()
    os.close(made.bell)


def _batch_job(root: Path, attempt: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", script_of(attempt, str(root))],
        env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": "n1"},
        start_new_session=True,
    )


def test_a_place_is_held_until_the_runner_lets_it_go(root: Path, places: Places) -> None:
    attempt = new_id()
    assert not places.is_held(attempt)
    job = _batch_job(root, attempt)
    until(lambda: (attempt, "HERE") in places.news(), "it says that it is there")
    assert places.is_held(attempt)
    assert places.news() == []
    until(lambda: places.release(attempt, 3) or job.poll() is not None, "it ends")
    assert job.returncode == 3
    assert not places.is_held(attempt)
    assert [path.name for path in (root / "n1").iterdir()] == ["bell"]


def test_signals_are_handed_on_and_end_nothing(root: Path, places: Places, tmp_path: Path) -> None:
    attempt = new_id()
    (tmp_path / "state").mkdir()
    bell = Bell(tmp_path / "state")
    job = _batch_job(root, attempt)
    until(lambda: places.news() == [(attempt, "HERE")], "it is there")
    os.killpg(job.pid, signal.SIGTERM)  # as Slurm does: every process of the job
    found: list[tuple[str, str]] = []
    until(lambda: found.extend(places.news()) or found, "it hands the signal on")
    assert found == [(attempt, "TERM")]
    assert job.poll() is None
    assert places.is_held(attempt)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    assert not places.is_held(attempt)
    places.forget(attempt)
    assert places.news() == []
    bell.close()


def test_a_second_batch_job_of_one_attempt_holds_nothing(root: Path, places: Places) -> None:
    attempt = new_id()
    first = _batch_job(root, attempt)
    until(lambda: places.news(), "it is there")
    assert _batch_job(root, attempt).wait(30) == 75
    assert places.is_held(attempt)
    until(lambda: places.release(attempt, 0) or first.poll() is not None, "it ends")
    assert first.returncode == 0


def test_it_ends_at_once_on_a_node_without_a_directory(tmp_path: Path) -> None:
    assert _batch_job(tmp_path, new_id()).wait(30) == 74


def test_the_bell_is_rung_and_the_runner_hears(root: Path, places: Places, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    bell = Bell(tmp_path / "state")
    bell.hear(os.dup(places.bell))
    attempt = new_id()
    job = _batch_job(root, attempt)
    bell.wait(30)
    until(lambda: places.news(), "it is there")
    until(lambda: places.release(attempt, 0) or job.poll() is not None, "it ends")
    bell.close()


def test_no_link_is_followed(root: Path, places: Places, tmp_path: Path) -> None:
    attempt = new_id()
    secret = tmp_path / "secret"
    secret.write_text("TERM\n")
    for name in (".told", ".held", ".end"):
        (root / "n1" / f"{attempt}{name}").symlink_to(secret)
    assert places.news() == []
    assert not places.is_held(attempt)
    places.release(attempt, 0)
    assert secret.read_text() == "TERM\n"
    (tmp_path / "elsewhere").mkdir()
    (root / "n2").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OuvrageError, match="cannot be used"):
        Places(root, "n2")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_stands_there_is_words_of_ours_or_nothing(root: Path, places: Places) -> None:
    attempt = new_id()
    (root / "n1" / f"{attempt}.told").write_bytes(b"HERE\nrm -rf /\n\xff\xfe\nUSR1\nTER")
    assert places.news() == [(attempt, "HERE"), (attempt, "USR1")]
    (root / "n1" / f"{attempt}.end").write_text("")  # no pipe
    places.release(attempt, 0)
    assert (root / "n1" / f"{attempt}.end").read_text() == ""


def test_a_directory_that_others_may_write_to_is_refused(root: Path) -> None:
    root.chmod(0o777)
    with pytest.raises(OuvrageError, match="written to by others"):
        Places(root, "n1")


def test_names_of_batch_jobs_are_ours_or_not() -> None:
    attempt = new_id()
    assert attempt_named(name_of(attempt)) == attempt
    assert [attempt_named(name) for name in ("wrap", "ouvrage:", "ouvrage:../../x", attempt)] == [
        None
    ] * 4

"""Signals sent to the meter are meant for the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from tests.support.meter import Meter, until

PY = sys.executable


@contextmanager
def running(meter: Meter, *command: str) -> Generator[subprocess.Popen[bytes]]:
    """A metered command in a process group of its own that has said ``ready``."""
    with subprocess.Popen(
        meter.words(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        env=meter.environment, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_request_to_end_is_passed_on(meter: Meter, number: int) -> None:
    with running(meter, "sh", "-c", "echo ready; exec sleep 60") as process:
        os.kill(process.pid, number)
        assert process.wait(30) == -number
    assert meter.end()["signal"] == number
    assert meter.end()["interrupted"]


def test_every_other_signal_is_passed_on_too(meter: Meter, script: Callable[[str], str]) -> None:
    numbers = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGRTMIN + 3]
    program = script(
        "import signal, sys\n"
        f"numbers = {[int(n) for n in numbers]}\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, numbers)\n"
        "print('ready', flush=True)\n"
        "for _ in numbers: print(int(signal.sigwait(numbers)), flush=True)\n"
    )
    with running(meter, PY, program) as process:
        assert process.stdout
        for number in numbers:
            os.kill(process.pid, number)
            assert int(process.stdout.readline()) == number
        assert process.wait(30) == 0
    assert not meter.end()["interrupted"]


def test_a_command_that_ends_well_when_asked_is_not_interrupted(meter: Meter) -> None:
    tidy = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    with running(meter, "sh", "-c", tidy) as process:
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == 0
    assert not meter.end()["interrupted"]


def test_a_signal_from_inside_is_not_sent_back(meter: Meter, script: Callable[[str], str]) -> None:
    """``kill 0`` reaches the meter too, since it shares the command's group."""
    program = script(
        "import os, signal, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGUSR1, lambda *a: seen.append(1))\n"
        "os.kill(0, signal.SIGUSR1)\n"
        "time.sleep(0.3)\n"
        "print('ready', flush=True)\n"
        "print(len(seen), flush=True)\n"
    )
    with running(meter, PY, program) as process:
        assert process.stdout
        assert process.stdout.readline() == b"1\n"
        assert process.wait(30) == 0


def test_stop_and_continue(meter: Meter) -> None:
    with running(meter, "sh", "-c", "echo ready; exec sleep 60") as process:
        child = until(lambda: children_of(process.pid), "the command")[0]
        os.kill(process.pid, signal.SIGTSTP)
        os.kill(process.pid, signal.SIGCONT)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(30) == -signal.SIGTERM
        assert not os.path.exists(f"/proc/{child}")


def test_the_meter_reaps_what_falls_to_it(meter: Meter) -> None:
    orphans = "for i in 1 2 3 4 5; do (sh -c 'true' &); done; sleep 0.3; echo ready; sleep 60"
    with running(meter, "sh", "-c", orphans) as process:
        until(lambda: len(children_of(process.pid)) == 1, "the orphans to be reaped")
        process.terminate()
        process.wait(30)


def test_a_killed_meter_leaves_everything_up_to_the_last_flush(meter: Meter) -> None:
    lines = "echo ready; i=0; while :; do i=$((i+1)); echo Epoch $i/999 loss; sleep 0.2; done"
    with running(meter, "sh", "-c", lines) as process:
        spool = until(meter.spools, "the spool")[0]
        until(lambda: spool.read_text().count('"samples"') >= 2, "the second flush")
        child = children_of(process.pid)[0]
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        os.kill(child, signal.SIGKILL)
    assert not meter.of_kind("end")
    assert len(meter.units()) >= 15
    assert meter.times()[-1] > 4_000_000


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    data = file.read()
            except OSError:
                continue
            if int(data[data.rfind(b")") + 2 :].split()[1]) == pid:
                found.append(int(name))
    return found

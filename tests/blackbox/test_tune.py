"""``ouvrage tune`` on the stand-in library: from an empty home to a limit, and the limit back again.

The load is slower under a lower limit, as a card is: it reads what limit stands, as the card would
know it. Each test's card has an id of its own, because a limit belongs to the machine, not to a home.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.home import Home, Said
from tests.support.meter import until
from tests.support.nvml import Cards, build, compiler

pytestmark = pytest.mark.slow
LOAD = """
import os, sys, time
from pathlib import Path
held = Path(os.environ["OUVRAGE_NVML_STATE"] + ".limit.0")
watts = int(held.read_text()) / 1000 if held.exists() else 700
Path(sys.argv[0]).with_name(f"pid-{watts:g}").write_text(str(os.getpid()))
for epoch in range(1, int(sys.argv[1]) + 1):
    time.sleep(0.3 * (600 / watts) ** 0.5)
    print(f"Epoch {epoch}/{sys.argv[1]} loss 0.1", flush=True)
"""


@dataclass(frozen=True)
class Machine:
    """A home on a machine with one GPU, and a load for it."""

    home: Home
    cards: Cards
    load: Path

    def words(self, epochs: int, *options: str) -> tuple[str, ...]:
        given = ("--limits", "300,600", "--repeat", "1", *options)
        return ("tune", *given, "--", sys.executable, "-u", str(self.load), str(epochs))

    def tune(self, epochs: int, *options: str) -> Said:
        return self.home(*self.words(epochs, *options))

    def begin(self, *options: str) -> subprocess.Popen[str]:
        """A tune whose command has begun under 600 W, and would go on for long."""
        process = self.home.start(
            *self.words(1000, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until(lambda: self.working(600), "the command runs under 600 W")
        return process

    def working(self, watts: int) -> int:
        file = self.load.with_name(f"pid-{watts}")
        return int(file.read_text() or 0) if file.exists() else 0

    @property
    def record(self) -> Path:
        return self.home.path / "power-limits.json"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if compiler() is None:
        pytest.skip("no C compiler here to build the stand-in for libnvidia-ml.so.1")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(ouvrage: Home, library: Path, tmp_path: Path) -> Machine:
    cards = Cards(library, tmp_path / "state")
    cards.set(
        gpu0__uuid=f"GPU-{uuid.uuid4()}", gpu0__name="NVIDIA A40", gpu0__power_mw=650_000,
        gpu0__util_gpu=95, gpu0__power_limit_mw=650_000,
    )  # fmt: skip
    load = tmp_path / "load.py"
    load.write_text(LOAD)
    home = Home(ouvrage.path, {**ouvrage.environment, **cards.environment})
    return Machine(home, cards, load)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_from_an_empty_home_to_the_limit_to_set(machine: Machine) -> None:
    prices = ("--electricity", "0.25/kWh", "--price", "2.00/h")
    said = machine.tune(12, *prices, "--campaign", "limits")
    assert said.code == 0, said.err
    assert machine.cards.limit_w() == 650
    assert not machine.record.exists()
    assert "[1/2] 600 W" in said.err
    assert "Epoch 12/12" in said.err
    assert "for the renter" in said.first
    lines = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert "< least" in lines["300"]
    assert lines["600"].endswith("< least")
    assert "one epoch costs 2" in lines["renter"]
    assert "average-power readings" in lines["energy"]
    assert lines["The"].startswith("The runs: ouvrage report --campaign limits")

    shown: dict[str, Any] = machine.home("tune", "--show", "limits", "--json").json
    low, high = shown["limits"]
    assert (low["power_limit_w"], high["power_limit_w"]) == (300, 600)
    assert low["seconds_per_unit"]["median"] == pytest.approx(0.424, rel=0.1)
    assert low["joules_per_unit"]["median"] == pytest.approx(
        300 * low["seconds_per_unit"]["median"], rel=0.02
    )
    assert shown["cheapest"]["renter"]["power_limit_w"] == 600
    assert shown["cheapest"]["renter"]["not_distinguishable_from"] == []
    assert shown["cheapest"]["owner"]["power_limit_w"] == 300
    assert shown["not_restored"] == []
    listed = machine.home("runs").out
    assert "limits 300 W" in listed
    assert "limits 600 W" in listed
    assert machine.home("report", "--campaign", "limits").code == 0
    assert machine.home("verify").code == 0


REFUSALS: dict[str, tuple[dict[str, object], tuple[str, ...], str, str]] = {
    "root": ({"gpu0.rc.power_limit_set": 4}, (), "tune/permission", "takes root"),
    "fixed": ({"gpu0.rc.power_limit_set": 3}, (), "tune/unsupported", "fixed"),
    "hang": ({"gpu0.power_limit_hang": 1}, ("--deadline", "1"), "tune/silent", "nvidia-smi"),
    "dead": ({"crash": 1}, (), "tune/driver", "nvidia-smi"),
    "mig": ({"gpu0.mig": 1}, (), "tune/mig", "-mig 0"),
    "forgets": ({"gpu0.persistence": 0}, (), "tune/persistence", "-pm 1"),
    "dumb": ({"gpu0.power_limit_min_mw": -1}, (), "tune/unsupported", "fixed"),
    "used": ({"proc": "0 1 1048576"}, (), "tune/in-use", "--shared"),
    "none": ({"count": 0}, (), "tune/no-gpu", "driver"),
    "high": ({}, ("--limits", "300,701"), "tune/limit", "between 200 and 700 W"),
    "low": ({}, ("--limits", "199,300"), "tune/limit", "between 200 and 700 W"),
    "one": ({}, ("--limits", "300"), "tune/one-limit", "--limits"),
    "other": ({}, ("--gpu", "3"), "tune/gpu", "nvidia-smi -L"),
    "words": ({}, ("--limits", "a lot"), "tune/list", "--limits"),
    "nan": ({}, ("--deadline", "nan"), "command/usage", "--help"),
    "rate": ({}, ("--rate", "1/h"), "tune/rate-alone", "--electricity"),
    "two": (
        {},
        ("--price", "$1/h", "--rate", "1 EUR/h", "--electricity", "1/kWh"),
        "price/two-currencies",
        "one currency",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_tried_is_refused_before_anything_runs(machine: Machine, case: str) -> None:
    settings, options, code, hint = REFUSALS[case]
    machine.cards.set(**settings)
    said = machine.tune(2, *options)
    assert (said.code, f"error[{code}]" in said.err) == (2, True), said.err
    assert hint in said.err.partition("hint:")[2]
    assert machine.cards.limit_w() in (None, 650)
    assert not machine.working(600)
    assert not machine.record.exists()
    assert not (machine.home.path / "spool").exists()


def test_the_command_sees_the_named_card_alone_and_only_its_limit_moves(machine: Machine) -> None:
    machine.cards.set(count=2, gpu1__uuid=f"GPU-{uuid.uuid4()}")
    said = machine.home(
        "tune", "--gpu", "1", "--limits", "250,350", "--repeat", "1", "--",
        "sh", "-c", "echo sees $CUDA_VISIBLE_DEVICES; sleep 2",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert f"sees {machine.cards.held('gpu1.uuid')}\n" in said.err
    assert (machine.cards.limit_w(0), machine.cards.limit_w(1)) == (None, 700)


def test_others_on_the_card_can_be_allowed_and_a_failing_command_ends_it(machine: Machine) -> None:
    machine.cards.set(proc="0 1 1048576")
    said = machine.home("tune", "--shared", "--limits", "300,600", "--", "sh", "-c", "exit 3")
    assert (said.code, "error[tune/command]" in said.err) == (1, True), said.err
    assert "exit code 3; the power limits are back" in said.err
    assert machine.cards.limit_w() == 650
    assert not machine.record.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_puts_the_limit_back_and_ends_the_command(machine: Machine, number: int) -> None:
    process = machine.begin()
    assert machine.cards.limit_w() == 600
    assert machine.record.exists()
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number, err
    assert "the power limits are back" in err
    assert machine.cards.limit_w() == 650
    assert not machine.record.exists()
    assert gone(machine.working(600))


def test_killed_outright_the_limit_goes_back_and_the_command_ends(machine: Machine) -> None:
    process = machine.begin()
    process.kill()
    _, err = process.communicate(timeout=30)
    until(lambda: not machine.record.exists(), "the guard has put the limit back")
    assert machine.cards.limit_w() == 650
    until(lambda: gone(machine.working(600)), "the command has ended")
    assert "ouvrage tune was killed; the power limits are back as they were" in err


def guard_of(pid: int) -> int:
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"limits_guard" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no guard")


def test_killed_with_its_guard_the_next_one_puts_it_back(machine: Machine) -> None:
    process = machine.begin()
    os.kill(guard_of(process.pid), signal.SIGKILL)
    process.kill()
    process.communicate(timeout=30)
    assert machine.cards.limit_w() == 600
    assert machine.record.stat().st_mode & 0o777 == 0o600
    said = machine.home("tune", "--restore")
    assert (said.code, said.out) == (0, "The power limits are back.\n")
    assert machine.cards.limit_w() == 650
    assert machine.home("tune", "--restore").out == "There is nothing to put back.\n"

    machine.record.write_text("{")
    said = machine.tune(2)
    assert (said.code, "error[tune/record]" in said.err) == (2, True)


def test_a_record_that_says_nonsense_is_refused(machine: Machine) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    machine.home.path.mkdir(parents=True)
    for limits in ('{"GPU-x": Infinity}', '{"GPU-x": -5}', '{"GPU-\\ud800": 100000}', "[]"):
        machine.record.write_text(f'{{"boot": "{boot}", "limits": {limits}}}')
        said = machine.home("tune", "--restore")
        assert (said.code, "error[tune/record]" in said.err) == (2, True), said.err
    machine.record.write_text(f'{{"boot": "{boot}", "limits": {{"GPU-gone": 100000}}}}')
    said = machine.home("tune", "--restore")
    assert (said.code, "delete that file" in said.err) == (1, True)


def test_without_its_guard_it_puts_the_limit_back_itself(machine: Machine) -> None:
    process = machine.begin()
    os.kill(guard_of(process.pid), signal.SIGKILL)
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert "the power limits are back" in err
    assert machine.cards.limit_w() == 650


def test_a_card_that_vanishes_is_said_loudly_and_remembered(machine: Machine) -> None:
    process = machine.begin("--deadline", "5")
    machine.cards.set(gpu0__lost=1)
    process.terminate()
    _, err = process.communicate(timeout=40)
    assert "A POWER LIMIT IS NOT BACK AS IT WAS" in err
    assert "ouvrage tune --restore" in err
    assert machine.record.exists()
    said = machine.tune(2)
    assert (said.code, "error[tune/not-restored]" in said.err) == (1, True), said.err
    machine.cards.set(gpu0__lost=0)
    assert machine.home("tune", "--restore").code == 0
    assert machine.cards.limit_w() == 650
    assert not machine.record.exists()


def test_two_at_once_on_one_card_are_refused(
    machine: Machine, homes: Callable[[str], Home]
) -> None:
    process = machine.begin()
    other = homes("other")
    elsewhere = Home(other.path, {**other.environment, **machine.cards.environment})
    said = elsewhere(*machine.words(2))
    assert (said.code, "error[tune/busy]" in said.err) == (2, True), said.err
    process.terminate()
    process.communicate(timeout=30)
    assert machine.cards.limit_w() == 650

"""A pattern of the user's that never ends holds up neither the command nor the meter."""

from __future__ import annotations

import sys
import time

from tests.support.meter import Meter

PY = sys.executable
ENDLESS = "(a+)+$"


def regex(pattern: str) -> tuple[str, ...]:
    return ("--quiet", "--unit", "step", "--unit-regex", pattern)


def test_an_endless_pattern_does_not_hold_up_the_command(meter: Meter) -> None:
    program = (
        "import time; began = time.monotonic()\n"
        "print('step a', flush=True); time.sleep(0.1); print('a' * 60 + '!', flush=True)\n"
        "for n in range(3000): print('x' * 80, flush=True)\n"
        "print(time.monotonic() - began)"
    )
    began = time.monotonic()
    done = meter.run(PY, "-c", program, options=regex(ENDLESS))
    assert time.monotonic() - began < 20
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 3003
    assert float(lines[-1]) < 1.5  # seconds: more than a pipe holds went through meanwhile
    assert [mark for _, mark, _, _ in meter.units()] == ["count"], "what came before it stays"
    (note,) = [line for line in meter.of_kind("note") if line["code"] == "meter/recogniser"]
    given_up = ("--unit-regex takes too long", "matching was not done when the command was")
    assert any(why in note["text"] for why in given_up)  # which one, the machine's load decides


def test_units_by_a_pattern_are_all_there_and_timed(meter: Meter) -> None:
    command = "for i in 1 2 3; do echo step $i; sleep 0.05; done; printf 'step 4'"
    meter.run("sh", "-c", command, options=regex(r"step (\d+)"))
    units = meter.units()
    assert [(via, mark, n) for via, mark, n, _ in units] == [
        ("regex", "end", n) for n in (1, 2, 3, 4)
    ]
    assert all(t is not None for *_, t in units)


def test_the_process_that_matches_is_no_part_of_the_run(meter: Meter) -> None:
    meter.run("sleep", "1.2", options=regex("x"))
    assert set(meter.column("processes")) <= {0, 1}
    assert meter.end()["outlived"] == 0

"""A terminal stays a terminal: input, Ctrl-C, Ctrl-Z, size, settings, and what is left behind."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Callable
from pathlib import Path

from tests.support.meter import Meter, until
from tests.support.terminal import Person

PY = sys.executable
TELLS = f"{PY} -c 'import os; print([os.isatty(n) for n in (0, 1, 2)], flush=True)'"


def test_the_command_has_a_controlling_terminal_like_ours(meter: Meter) -> None:
    probe = f"{TELLS}; test -e /dev/tty && : > /dev/tty && echo controlling; stty -a | head -1; ps -o stat= $$"
    with Person(meter.words("sh", "-c", probe), meter.environment) as person:
        assert person.leaves() == 0
    assert b"[True, True, True]" in person.seen
    assert b"controlling" in person.seen
    assert b"s+" in person.seen


def test_what_is_typed_arrives_with_echo_and_editing(meter: Meter) -> None:
    with Person(
        meter.words("sh", "-c", "echo ready; read x; echo got $x"), meter.environment
    ) as person:
        person.waits_for(b"ready")
        person.types(b"helloo\x7f\r")
        assert person.leaves() == 0
    assert b"got hello\r\n" in person.seen
    assert b"helloo\x08 \x08" in person.seen


def test_passwords_are_not_echoed(meter: Meter, script: Callable[[str], str]) -> None:
    program = script("import getpass; print(len(getpass.getpass('secret? ')))")
    with Person(meter.words(PY, program), meter.environment) as person:
        person.waits_for(b"secret? ")
        person.types(b"hidden\r")
        assert person.leaves() == 0
    assert b"hidden" not in person.seen
    assert b"6\r\n" in person.seen


def test_end_of_input_arrives(meter: Meter) -> None:
    with Person(meter.words("sh", "-c", "echo ready; cat; echo over"), meter.environment) as person:
        person.waits_for(b"ready")
        person.types(b"\x04")
        assert person.leaves() == 0
    assert b"over" in person.seen


def test_ctrl_c_reaches_the_command_and_the_run_is_interrupted(meter: Meter) -> None:
    with Person(meter.words("sh", "-c", "echo ready; sleep 60"), meter.environment) as person:
        person.waits_for(b"ready")
        person.types(b"\x03")
        assert person.leaves() == -signal.SIGINT
    assert meter.end()["interrupted"]


def test_a_command_may_take_ctrl_c_and_finish(meter: Meter) -> None:
    saves = "trap 'echo saved; exit 0' INT; echo ready; while :; do sleep 0.05; done"
    with Person(meter.words("sh", "-c", saves), meter.environment) as person:
        person.waits_for(b"ready")
        person.types(b"\x03")
        assert person.leaves() == 0
    assert b"saved" in person.seen
    assert not meter.end()["interrupted"]


def test_the_terminal_is_put_back_whatever_happens(meter: Meter) -> None:
    leader = "stty -a > $0.before; {0}; stty -a > $0.after; cmp $0.before $0.after && echo same"
    for ending in ("stty raw -echo; exit 3", "kill -9 $$", "stty raw; kill -TERM $$"):
        line = " ".join(meter.words("sh", "-c", f"'{ending}'"))
        words = ["sh", "-c", leader.format(line), str(meter.home.parent / "stty")]
        with Person(words, meter.environment) as person:
            person.leaves()
        assert b"same" in person.seen, ending


def test_the_size_follows(meter: Meter, script: Callable[[str], str]) -> None:
    program = script(
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *a: print('now', os.get_terminal_size(), flush=True))\n"
        "print('first', os.get_terminal_size(), flush=True)\n"
        "input()\n"
    )
    with Person(["sh", "-c", "stty rows 33 cols 77; exec \"$@\"", "x", *meter.words(PY, program)],
                meter.environment) as person:  # fmt: skip
        person.waits_for(b"first os.terminal_size(columns=77, lines=33)")
        person.resizes(44, 99)
        person.waits_for(b"now os.terminal_size(columns=99, lines=44)")
        person.types(b"\r")
        assert person.leaves() == 0


def test_ctrl_z_stops_everything_and_fg_goes_on(meter: Meter) -> None:
    """As a person at a shell with job control."""
    env = meter.environment | {"PS1": "$ ", "ENV": "", "HISTFILE": ""}
    with Person(["bash", "--norc", "--noprofile", "-i"], env) as person:
        line = " ".join(meter.words("sh", "-c", "'echo rea''dy; read x; echo got $x'"))
        person.types(line.encode() + b"\n")
        person.waits_for(b"ready")
        person.types(b"\x1a")
        person.waits_for(b"Stopped")
        at = len(person.seen)
        person.types(b"echo at$((1+1))shell\n")
        at = person.waits_for(b"at2shell", at)
        person.types(b"fg\n")
        person.waits_for(b"ouvrage", at)
        # The shell echoes; so does the command's own terminal, once it is in front again.
        person.types(b"more\r")
        at = person.waits_for(b"got more", at)
        person.waits_for(b"$ ", at)  # before that, what is typed still goes to the command
        person.types(b"exit\n")
        assert person.leaves() == 0
    assert meter.end()["exit_code"] == 0


def test_an_output_that_is_a_terminal_stays_one_alone(meter: Meter, tmp_path: Path) -> None:
    """``ouvrage run -- train > log``: progress bars on stderr still draw."""
    line = " ".join(meter.words("sh", "-c", f'"{TELLS}; echo A >&2"'))
    with Person(["sh", "-c", f"{line} > {tmp_path}/log"], meter.environment) as person:
        assert person.leaves() == 0
    assert "[True, False, True]" in (tmp_path / "log").read_text()
    assert b"A\r\n" in person.seen
    assert b"\r\r" not in person.seen


def test_ctrl_c_in_a_pipeline_comes_once(meter: Meter, script: Callable[[str], str]) -> None:
    """The command shares the terminal's group, so the kernel has told it already."""
    program = script(
        "import signal, sys, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGINT, lambda *a: seen.append(1))\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "while not seen: time.sleep(0.01)\n"
        "time.sleep(0.3)\n"
        "print('times', len(seen), file=sys.stderr, flush=True)\n"
        "sys.exit(5)\n"
    )
    line = " ".join(meter.words(PY, program))
    with Person(["bash", "-c", f"trap : INT; {line} | cat; exit ${{PIPESTATUS[0]}}"],
                meter.environment) as person:  # fmt: skip
        person.waits_for(b"ready")
        person.types(b"\x03")
        assert person.leaves() == 5
    assert b"times 1" in person.seen
    assert meter.end()["interrupted"]


def test_without_a_terminal_none_is_made(meter: Meter) -> None:
    done = meter.run("sh", "-c", TELLS)
    assert done.stdout == b"[False, False, False]\n"


def test_a_terminal_that_goes_away_ends_the_command(meter: Meter, tmp_path: Path) -> None:
    probe = (
        f"trap 'echo hup > {tmp_path}/hup; exit 1' HUP; echo ready; while :; do sleep 0.05; done"
    )
    with Person(meter.words("sh", "-c", probe), meter.environment) as person:
        person.waits_for(b"ready")
        os.close(person.screen)
        os.waitpid(person.pid, 0)
        person.status = 0
    until((tmp_path / "hup").exists, "the hangup")
    assert meter.end()["interrupted"]


def test_raw_mode_is_not_left_on_a_terminal_given_to_a_test(meter: Meter) -> None:
    with Person(meter.words("sh", "-c", "echo ready; sleep 60"), meter.environment) as person:
        person.waits_for(b"ready")
        flags = person.settings()[3]
        assert isinstance(flags, int)
        assert not flags & termios.ICANON
        person.types(b"\x1c")
        assert person.leaves() == -signal.SIGQUIT


def test_a_job_in_the_background_runs_without_the_keyboard(meter: Meter) -> None:
    line = " ".join(meter.words("sh", "-c", "'echo from behind'"))
    with Person(["bash", "-i", "-c", f"{line} & wait; echo rc $?"], meter.environment) as person:
        assert person.leaves() == 0
    assert b"from behind" in person.seen
    assert b"rc 0" in person.seen

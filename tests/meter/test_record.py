"""What a run leaves on the disk, and what happens when the disk does not want it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ouvrage.meter.spool_file import SpoolFile
from ouvrage.metering.spool import read_spool
from tests.support.meter import Meter, until

PY = sys.executable


def test_the_spool_says_what_was_run(meter: Meter, tmp_path: Path) -> None:
    options = (
        "--quiet",
        "--label",
        "mine",
        "--price",
        "0.30/h",
        "--currency",
        "USD",
        "--unit",
        "step",
    )
    meter.run("sh", "-c", "exit 3", b"\xff".decode("utf-8", "surrogateescape"), options=options,
              cwd=tmp_path)  # fmt: skip
    header = meter.lines()[0]
    assert header["label"] == "mine"
    assert header["price"] == {"amount": "0.30", "currency": "USD", "per": "h"}
    assert header["unit"] == "step"
    assert header["command"] == ["sh", "-c", "exit 3", "\\xff"]
    assert header["cwd"] == str(tmp_path)
    assert header["host"]["cpus_allowed"] == len(os.sched_getaffinity(0))
    assert header["source"] == (meter.home / "source").read_text().strip()
    assert meter.end()["exit_code"] == 3


def test_every_spool_reads_back(meter: Meter) -> None:
    meter.run("sh", "-c", "for i in 1 2 3; do echo Epoch $i/3 loss; done")
    spool = read_spool(meter.spools()[0].read_text().splitlines(keepends=True))
    assert spool.outcome == "completed"
    assert spool.wall_us == meter.end()["t"]
    assert max(meter.times()) <= spool.wall_us


def test_only_the_owner_can_read_it(meter: Meter) -> None:
    meter.run("true")
    for path in (meter.home, meter.home / "spool"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (meter.home / "source", *meter.spools()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_spool_is_locked_while_the_meter_lives_and_free_afterwards(meter: Meter) -> None:
    with subprocess.Popen(
        meter.words("cat"), stdin=subprocess.PIPE, env=meter.environment
    ) as process:
        spool = until(meter.spools, "the spool")[0]
        with spool.open("rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert process.stdin
        process.stdin.close()
        process.wait(30)
    with spool.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_process_left_behind_does_not_keep_the_lock(meter: Meter) -> None:
    words = meter.words("sh", "-c", "sleep 5 & echo $!")
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=meter.environment) as process:
        assert process.stdout
        left = int(process.stdout.readline())
        process.wait(30)
        with meter.spools()[0].open("rb") as file:
            until(lambda: lockable(file.fileno()), "the lock")
        os.kill(left, 15)


def lockable(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_samples_come_once_a_second_from_the_whole_tree(meter: Meter) -> None:
    busy = "import time\nwhile time.process_time() < 0.8: pass\ntime.sleep(1.5)"
    meter.run("sh", "-c", f"{PY} -c '{busy}'; true")
    times = meter.times()
    assert len(times) >= 3
    assert times[0] < 2_000_000
    assert times == sorted(times)
    used = [meter.column(name)[-1] for name in ("cpu_user_us", "cpu_system_us")]
    assert sum(value or 0 for value in used) > 750_000
    assert max(value or 0 for value in meter.column("processes")) == 2
    assert max(value or 0 for value in meter.column("rss_bytes")) > 4_000_000
    for name in ("run_delay_us", "ctx_involuntary"):
        assert None not in meter.column(name), name
    for name in ("host_busy_us", "memory_available_bytes"):
        column = meter.column(name)
        assert None not in (column[0], column[-1]), name


def test_a_gap_is_a_gap(meter: Meter) -> None:
    """A meter that was stopped records the moments at which it really sampled."""
    with subprocess.Popen(
        meter.words("cat"), stdin=subprocess.PIPE, env=meter.environment
    ) as process:
        until(lambda: meter.spools() and meter.times(), "the first sample")
        os.kill(process.pid, 19)
        until(
            lambda: b"\nState:\tT" in Path(f"/proc/{process.pid}/status").read_bytes(), "the stop"
        )
        started = os.times().elapsed
        until(lambda: os.times().elapsed - started > 3.1, "a gap")
        os.kill(process.pid, 18)
        assert process.stdin
        process.stdin.close()
        process.wait(30)
    gaps = [
        later - earlier for earlier, later in zip(meter.times(), meter.times()[1:], strict=False)
    ]
    assert max(gaps) > 2_500_000


def test_a_home_that_cannot_be_written_is_a_warning(meter: Meter, tmp_path: Path) -> None:
    meter.environment["OUVRAGE_HOME"] = "/proc/none"
    report = tmp_path / "report.json"
    done = meter.run("sh", "-c", "echo out; exit 4", options=("--report", str(report)))
    assert (done.stdout, done.returncode) == (b"out\n", 4)
    assert b"warning[spool/not-kept]" in done.stderr
    assert json.loads(report.read_text())["exit_code"] == 4


def test_a_report_that_cannot_be_written_is_a_warning(meter: Meter) -> None:
    done = meter.run(
        "sh", "-c", "exit 4", options=("--quiet", "--report", "/proc/none/report.json")
    )
    assert done.returncode == 4
    assert b"warning[report/not-written]" in done.stderr


def test_a_disk_that_fills_up_is_a_warning(meter: Meter) -> None:
    """A file-size limit stands in for the disk: the write breaks off in the middle of a line."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))

    done = meter.run("sh", "-c", "sleep 1.5; echo done; exit 6", preexec_fn=limit)
    assert (done.stdout, done.returncode) == (b"done\n", 6)
    assert b"warning[spool/disk-full]" in done.stderr
    assert meter.spools()[0].stat().st_size <= 1500
    spool = read_spool(meter.spools()[0].read_text().splitlines(keepends=True))
    assert spool.outcome == "lost"


def test_of_a_flush_that_broke_off_the_whole_lines_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written in one piece: what is cut is the line in the middle and those behind it."""
    spool = SpoolFile(tmp_path / "s.ndjson")
    spool.open({"k": "run"})
    for number in range(4):
        spool.write({"k": "note", "n": number})
    really, room = os.write, [40]

    def narrow(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        took = min(room[0], len(data))
        room[0] -= took
        return really(fd, data[:took])

    monkeypatch.setattr(os, "write", narrow)
    spool.flush()
    assert spool.trouble
    on_disk = (tmp_path / "s.ndjson").read_text()
    assert on_disk == '{"k":"run"}\n{"k":"note","n":0}\n{"k":"note","n":1}\n'
    assert len(list(spool.lines())) == 5
    room[0] = 1000
    spool.flush()
    assert (tmp_path / "s.ndjson").read_text() == "".join(spool.lines())
    assert [json.loads(line).get("n") for line in spool.lines()] == [None, 0, 1, 2, 3]
    spool.close()


def test_a_home_that_is_deleted_meanwhile_is_a_warning(meter: Meter) -> None:
    done = meter.run("sh", "-c", f"sleep 0.5; rm -r {meter.home}; echo done; exit 6")
    assert (done.stdout, done.returncode) == (b"done\n", 6)
    assert b"warning[spool/disk-full]" in done.stderr
    assert b"its file was removed" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_that_has_room_again_gets_what_waited(meter: Meter, small_disk: Path) -> None:
    """A real full disk; what could not be written is kept and written whole later."""
    meter.home = small_disk / "home"
    meter.environment["OUVRAGE_HOME"] = str(meter.home)
    full = f"{small_disk}/full"
    lines = "for i in $(seq 500); do echo Epoch $i/500 loss; done >&2"
    command = f"sleep 0.5; cat /dev/zero > {full} 2>/dev/null; {lines}; sleep 5.2; rm {full}"
    done = meter.run("sh", "-c", f"{command}; echo done")
    assert (done.stdout, done.returncode) == (b"done\n", 0)
    assert b"warning[spool/disk-full]" in done.stderr
    spool = read_spool(meter.spools()[0].read_text().splitlines(keepends=True))
    assert spool.outcome == "completed"
    assert any(note.startswith("spool/disk-full") for note in spool.notes)
    assert len(spool.columns.times) >= 6


def test_the_summary_goes_to_stderr_and_stdout_stays_the_commands(meter: Meter) -> None:
    done = meter.run("sh", "-c", "echo Epoch 1/1 loss", options=("--plain", "--price", "1/h"))
    assert done.stdout == b"Epoch 1/1 loss\n"
    assert b"ouvrage report" in done.stderr


def test_the_report_has_the_agreed_names(meter: Meter, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    meter.run("sh", "-c", "echo Epoch 1/1 loss", options=("--quiet", "--report", str(path)))
    report = json.loads(path.read_text())
    names = "run label command exit_code outcome started ended wall_s unit units units_accepted"
    names += (
        " seconds_per_unit price cost_per_unit time phases energy_j coverage grade grade_shares"
    )
    assert set(names.split()) <= report.keys()
    assert (report["outcome"], report["units"], report["unit"]) == ("completed", 1, "epoch")
    assert os.listdir(tmp_path).count("report.json") == 1


def test_units_in_lines_and_by_pattern(meter: Meter) -> None:
    meter.run("sh", "-c", "for i in 1 2 3; do echo Epoch $i/3 loss 1; sleep 0.05; done")
    assert [(via, n) for via, _, n, _ in meter.units()] == [("line", 1), ("line", 2), ("line", 3)]
    assert None not in [t for *_, t in meter.units()]
    options = ("--quiet", "--unit", "step", "--unit-regex", r"step (\d+) ")
    meter.run("sh", "-c", "echo step 5 x >&2; sleep 0.05; echo step 6 x", options=options)
    assert {via for via, *_ in meter.units()} == {"regex"}
    assert len(meter.units()) == 2


def test_lines_that_come_in_one_read_are_counted_and_not_timed(
    meter: Meter, script: Callable[[str], str]
) -> None:
    """Python keeps what it prints into a pipe until a block is full."""
    program = script("for i in range(1, 4): print(f'Epoch {i}/3 loss 0.1')")
    meter.run(PY, program)
    assert [(n, t) for _, _, n, t in meter.units()] == [(1, None), (2, None), (3, None)]


def test_a_fault_of_the_meters_own_does_not_touch_the_command(meter: Meter, tmp_path: Path) -> None:
    """Whatever part breaks: output and exit code are the command's, and the fault is told."""
    faults = {
        "ouvrage.meter.account.Account.keep": b"warning[meter/failed]",
        "ouvrage.meter.account.Account.__init__": b"warning[meter/failed]",
        "ouvrage.metering.recognise.Recogniser.feed": b"",
        "ouvrage.meter.sampler.Instruments.read": b"",
        "ouvrage.metering.run_view.run_views": b"warning[report/failed]",
    }
    for name, told in faults.items():
        owner, _, attribute = name.rpartition(".")
        module, _, cls = (
            owner.rpartition(".") if owner.split(".")[-1][0].isupper() else (owner, "", "")
        )
        starter = (
            "import sys, importlib\n"
            "def broken(*a, **k): raise ZeroDivisionError('made up')\n"
            f"setattr(eval({('m.' + cls if cls else 'm')!r}, "
            f"{{'m': importlib.import_module({module!r})}}), {attribute!r}, broken)\n"
            "from ouvrage.__main__ import main\n"
            "sys.exit(main(sys.argv[1:]))\n"
        )
        done = subprocess.run(
            [PY, "-c", starter, "run", "--", "sh", "-c", "echo Epoch 1/1 loss; exit 9"],
            env=meter.environment, capture_output=True, check=False, timeout=30, cwd=tmp_path,
        )  # fmt: skip
        assert (done.stdout, done.returncode) == (b"Epoch 1/1 loss\n", 9), (name, done.stderr)
        assert told in done.stderr, name


def test_closed_and_broken_stderr_change_no_exit_code(meter: Meter) -> None:
    line = " ".join(meter.words("true", options=()))
    for where in ("2>&-", "2> /dev/full", "2> >(exec true)"):
        done = subprocess.run(["bash", "-c", f"{line} {where}"], env=meter.environment, check=False)
        assert done.returncode == 0, where

"""The command must not be able to tell that it is metered."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.meter import Meter, until

PY = sys.executable


def test_output_and_exit_code_are_the_commands(meter: Meter) -> None:
    done = meter.run("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\n", b"err\n", 7)
    assert meter.end()["exit_code"] == 7
    assert not meter.end()["interrupted"]


def test_fifty_megabytes_of_any_bytes_pass_unchanged(meter: Meter, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 50
    source = tmp_path / "data"
    source.write_bytes(data)
    done = meter.run("cat", str(source), timeout=60)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert done.returncode == 0


def test_input_is_the_callers(meter: Meter) -> None:
    done = meter.run("cat", stdin=None, input=b"a\0b\xff")
    assert done.stdout == b"a\0b\xff"


def test_the_environment_gains_one_variable_and_keeps_the_rest(meter: Meter) -> None:
    odd = {b"PLAIN": b"1", b"ODD": b"\xff\xfe", b"EMPTY": b"", b"BASH_FUNC_f%%": b"() { :; }"}
    base = {os.fsencode(name): os.fsencode(value) for name, value in meter.environment.items()}
    # Neither LANG nor LC_ALL: Python would set LC_CTYPE for itself and for what it starts.
    env = {
        name: value
        for name, value in (base | odd).items()
        if not name.startswith((b"LC_", b"LANG"))
    }
    plain = subprocess.run(["env", "-0"], env=env, capture_output=True, check=True).stdout
    metered = meter.run("env", "-0", env=env).stdout
    extra = set(metered.split(b"\0")) - set(plain.split(b"\0"))
    assert [item.partition(b"=")[0] for item in extra] == [b"OUVRAGE_SOCKET"]
    assert [item for item in metered.split(b"\0") if item not in extra] == plain.split(b"\0")


def test_directory_mask_limits_and_arguments_are_kept(meter: Meter, tmp_path: Path) -> None:
    probe = "pwd; umask; ulimit -a; nice; printf '%s|' \"$@\""
    command = ("sh", "-c", probe, "name", "a b", "", "$x", "*")
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
    assert meter.run(*command, cwd=tmp_path).stdout == plain


def test_signal_dispositions_and_mask_are_those_of_a_plain_start(meter: Meter) -> None:
    probe = ("grep", "-E", "^(Sig(Blk|Ign|Cgt)|NoNewPrivs|CapEff)", "/proc/self/status")
    plain = subprocess.run(probe, capture_output=True, check=True).stdout
    assert without_the_c_librarys(meter.run(*probe).stdout) == without_the_c_librarys(plain)


def without_the_c_librarys(status: bytes) -> bytes:
    """glibc's posix_spawn leaves its own two signals (32, 33) ignored, as in all it starts."""
    return re.sub(
        rb"(SigIgn:\t)(\w+)", lambda m: b"%s%016x" % (m[1], int(m[2], 16) & ~(3 << 31)), status
    )


def test_an_ignored_hangup_stays_ignored(meter: Meter) -> None:
    probe = ["grep", "^SigIgn", "/proc/self/status"]
    plain = subprocess.run(["nohup", *probe], capture_output=True, check=True).stdout
    metered = subprocess.run(
        ["nohup", *meter.words(*probe)], capture_output=True, check=True, env=meter.environment
    )
    assert without_the_c_librarys(metered.stdout) == without_the_c_librarys(plain)


def test_inherited_descriptors_are_there_and_ours_are_not(meter: Meter) -> None:
    reader, writer = os.pipe()
    probe = (PY, "-c", "import os; print(sorted(os.listdir('/proc/self/fd'), key=int))")
    plain = subprocess.run(probe, pass_fds=(writer,), capture_output=True, check=True).stdout
    assert meter.run(*probe, pass_fds=(writer,)).stdout == plain
    meter.run(PY, "-c", f"import os; os.write({writer}, b'through\\n')", pass_fds=(writer,))
    os.close(writer)
    assert os.read(reader, 100) == b"through\n"
    os.close(reader)


def test_a_closed_output_stays_closed(meter: Meter) -> None:
    probe = f"{PY} -c 'import os,sys\ntry: os.fstat(1)\nexcept OSError as e: sys.exit(e.errno)'"
    line = " ".join(f"'{word}'" for word in meter.words("sh", "-c", "true")[:-3])
    done = subprocess.run(
        ["sh", "-c", f'exec {line} sh -c "$1" >&-', "x", probe], env=meter.environment, check=False
    )
    assert done.returncode == errno.EBADF


@pytest.mark.parametrize(
    ("name", "code", "word"),
    [("no-such-command", 127, "command/unknown"), ("/etc/passwd", 126, "command/not-executable")],
)
def test_what_cannot_be_run_is_told_as_a_shell_tells_it(
    meter: Meter, name: str, code: int, word: str
) -> None:
    done = meter.run(name)
    assert done.returncode == code
    assert word in done.stderr.decode()
    assert "hint:" in done.stderr.decode()
    assert not meter.home.exists()


def test_a_script_without_first_line_runs_in_sh(meter: Meter, tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.write_text('echo "$0 $1"\n')
    path.chmod(0o755)
    assert meter.run(str(path), "one").stdout == f"{path} one\n".encode()


def test_a_script_whose_interpreter_is_missing_writes_nothing(meter: Meter, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("#!/no/such/interpreter\n")
    path.chmod(0o755)
    assert meter.run(str(path)).returncode == 127
    assert not meter.home.exists()


def test_the_meter_dies_of_the_signal_that_killed_the_command(meter: Meter) -> None:
    for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
        done = meter.run("sh", "-c", f"kill -{int(number)} $$")
        assert done.returncode == -number
        assert meter.end()["signal"] == number
        assert meter.end()["exit_code"] is None
        assert meter.end()["interrupted"] is (number == signal.SIGTERM)


def test_a_reader_that_leaves_ends_the_writer(meter: Meter) -> None:
    line = " ".join(meter.words("yes", "Epoch"))
    done = subprocess.run(
        ["bash", "-c", f"{line} | head -1; echo ${{PIPESTATUS[0]}}"],
        env=meter.environment, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == b"Epoch\n141\n"


def test_a_silent_command_sees_its_reader_leave(meter: Meter) -> None:
    """``tail -f | head``: who polls its output for a reader must still find none."""
    probe = "import select; p = select.poll(); p.register(1, 0); p.poll(20000) or exit(9); exit(3)"
    line = " ".join(meter.words(PY, "-c", f'"{probe}"'))
    done = subprocess.run(
        ["bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"],
        env=meter.environment, capture_output=True, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout == b"3\n"


def test_a_full_disk_behind_stdout_is_no_success(meter: Meter) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            meter.words("sh", "-c", "echo x; sleep 0.2; echo y || exit 4"),
            stdout=full, stderr=subprocess.PIPE, env=meter.environment, check=False, timeout=30,
        )  # fmt: skip
    assert done.returncode != 0
    assert any(note["code"] == "output/refused" for note in meter.of_kind("note"))


def test_two_outputs_on_one_pipe_stay_in_order(meter: Meter) -> None:
    loop = "for i in $(seq 200); do echo o$i; echo e$i >&2; done"
    done = subprocess.run(
        meter.words("sh", "-c", loop), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=meter.environment, check=True, timeout=30,
    )  # fmt: skip
    assert done.stdout.decode().split() == [f"{k}{i}" for i in range(1, 201) for k in "oe"]


def test_a_slow_reader_of_one_output_does_not_hold_the_other(meter: Meter) -> None:
    """stdout is never read here; a megabyte on stderr must come through all the same."""
    both = "head -c 1000000 /dev/zero & head -c 1000000 /dev/zero >&2; wait"
    with subprocess.Popen(
        meter.words("sh", "-c", both), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=meter.environment,
    ) as process:  # fmt: skip
        assert process.stderr
        assert process.stdout
        assert len(process.stderr.read(1_000_000)) == 1_000_000
        assert len(process.stdout.read()) == 1_000_000
        assert process.wait(30) == 0


def test_what_outlives_the_command_keeps_its_output(meter: Meter, tmp_path: Path) -> None:
    """``$(...)`` waits for it, it is not killed, and the meter itself does not wait."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    later = f"(read x < {gate}; echo late; echo alive > {gate}.done) & echo early"
    with subprocess.Popen(
        meter.words("sh", "-c", later), stdout=subprocess.PIPE, env=meter.environment
    ) as process:
        assert process.wait(30) == 0
        assert meter.end()["outlived"] == 1
        gate.write_text("go\n")
        assert process.stdout
        assert process.stdout.read() == b"early\nlate\n"
    until(lambda: Path(f"{gate}.done").exists(), "the process that outlived the command")


def test_orphans_are_counted_and_their_time_is_not_lost(meter: Meter) -> None:
    busy = "import time; e=time.process_time()+1.2\nwhile time.process_time()<e: pass"
    orphan = f"({PY} -c '{busy}' &) ; sleep 0.1; {PY} -c '{busy}'; sleep 1.5"
    assert meter.run("sh", "-c", orphan).returncode == 0
    last = [meter.column(name)[-1] for name in ("cpu_user_us", "cpu_system_us")]
    assert sum(value or 0 for value in last) > 2_200_000


def test_a_socket_given_by_another_meter_is_replaced(meter: Meter) -> None:
    inner = meter.words("sh", "-c", "echo $OUVRAGE_SOCKET")
    done = meter.run("sh", "-c", f"echo $OUVRAGE_SOCKET; {' '.join(inner[:-1])} '{inner[-1]}'")
    outer_socket, inner_socket = done.stdout.split()
    assert outer_socket != inner_socket
    assert len(meter.spools()) == 2
    assert not os.path.exists(os.path.dirname(outer_socket))

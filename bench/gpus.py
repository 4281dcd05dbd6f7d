"""What reading GPUs costs, against nvitop and CodeCarbon, on eight GPUs of the stand-in library.

The stand-in answers from memory here, so this is the cost of the software around the driver and says
nothing about a driver's own. Peers take turns with ours in the same process or the same minute, and
each figure is set against its bar; a peer that cannot be installed is named and left out. Exit code 1
where a bar is missed.

CodeCarbon is compared twice: once both have started, and over the whole life of a command, imports,
start and last words included. What they do is not the same: each second it reads energy and power of
the cards and the machine's memory, and takes the processor's power from a table; ours reads twenty
figures a card, every process and thread of the command, the host's pressure, disks and networks.

    python -m bench.gpus [--rounds 9] [--seconds 30] [--life 60]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench._peers import peer
from bench.overhead import Bench, own_time, resident, wait
from ouvrage.adapters import child_subreaper

ROOT = Path(__file__).resolve().parent.parent
GPUS = 8
NVITOP_PACKAGE, CARBON_PACKAGE = "nvitop==1.7.2", "codecarbon==3.3.2"
NVITOP, CODECARBON, SHARE, MEMORY_MB = 10.0, 5.0, 0.002, 45.0
TURNS = """
import json, os, sys, time
from ouvrage.adapters.nvml import Nvml
from ouvrage.meter.gpu_probe import Probe
rounds, peer = int(sys.argv[1]), sys.argv[2] == "nvitop"
probe = Probe(Nvml(), os.open(os.devnull, os.O_WRONLY))
assert probe.open()
def cost(call, times):
    call()
    start = time.process_time_ns()
    for _ in range(times): call()
    return (time.process_time_ns() - start) / times / 1000
theirs = None
if peer:
    import nvitop
    devices = [nvitop.Device(index) for index in range(8)]
    theirs = lambda: [device.as_snapshot() for device in devices]
print(json.dumps([(cost(probe.tick, 200), cost(theirs, 20) if theirs else None) for _ in range(rounds)]))
"""
TICKING = "import time\nwhile True: time.sleep(0.01)"
"""A program that works a little a hundred times a second: no sample finds it as the last one did."""
CARBON = """
import logging, sys, time
logging.disable(logging.CRITICAL)
from codecarbon import OfflineEmissionsTracker
tracker = OfflineEmissionsTracker(
    country_iso_code="FRA", measure_power_secs=1, save_to_file=False, log_level="critical"
)
tracker.start()
print(tracker._conf.get("gpu_count", 0), flush=True)
for _ in sys.stdin: print(time.process_time(), flush=True)
tracker.stop()
"""


def compiled(directory: Path) -> None:
    """Build the stand-in for NVIDIA's library in a directory."""
    words = [shutil.which("cc") or "gcc", "-O2", "-fvisibility=hidden", "-shared", "-fPIC"]
    words += ["-Wl,-soname,libnvidia-ml.so.1", "-o", str(directory / "libnvidia-ml.so.1")]
    subprocess.run([*words, str(ROOT / "native" / "nvml_stub.c"), "-lpthread"], check=True)


def build(directory: Path) -> dict[str, str]:
    """The stand-in with eight cards at work; what a process needs to find it."""
    state = directory / "state"
    compiled(directory)
    cards = (
        f"gpu{n}.util_gpu=87\ngpu{n}.power_mw=412000\ngpu{n}.energy_mj=99\n" for n in range(GPUS)
    )
    state.write_text(f"count={GPUS}\nstill=1\n" + "".join(cards))
    called = directory / "nvidia-smi"  # CodeCarbon looks for GPUs only where this can be called
    called.write_text("#!/bin/sh\nexit 0\n")
    called.chmod(0o755)
    return {
        "LD_LIBRARY_PATH": str(directory),
        "OUVRAGE_NVML_STATE": str(state),
        "PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }


def sampling(bench: Bench, rounds: int) -> None:
    """Processor time of one sample of eight GPUs, ours and nvitop's in turn."""
    place = peer(NVITOP_PACKAGE)
    python = str(place / "python") if place else sys.executable
    words = [python, "-c", TURNS, str(rounds), "nvitop" if place else "-"]
    done = subprocess.run(words, env=bench.environment, check=True, capture_output=True, text=True)
    pairs: list[list[float]] = json.loads(done.stdout)
    ours = statistics.median(pair[0] for pair in pairs)
    sys.stdout.write(f"  a sample of {GPUS} GPUs, written out: {ours:.0f} us of a core\n")
    if not place:
        sys.stdout.write("  nvitop could not be installed here: left out\n")
        return
    theirs = statistics.median(pair[1] for pair in pairs)
    sys.stdout.write(f"  nvitop's snapshot of {GPUS} GPUs: {theirs:.0f} us of a core\n")
    ratio = statistics.median(pair[1] / pair[0] for pair in pairs)
    bench.least("cheaper than nvitop, median of rounds", ratio, NVITOP)


def probe_of(meter: int) -> int:
    """The meter's child that reads GPUs."""
    for task in Path(f"/proc/{meter}/task").iterdir():
        for pid in (task / "children").read_text().split():
            if b"gpu_probe" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
    raise SystemExit("the meter did not start reading GPUs")


@contextlib.contextmanager
def metered(bench: Bench, command: str) -> Iterator[tuple[int, int]]:
    """A shell command under the meter; the meter's process and its child's, both at their pace."""
    with subprocess.Popen(
        bench.metered("sh", "-c", f"trap 'kill 0' TERM; {command} wait"),
        env=bench.environment,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        wait(5.0)
        yield process.pid, probe_of(process.pid)
        process.terminate()


@contextlib.contextmanager
def carbon(bench: Bench) -> Iterator[subprocess.Popen[bytes] | None]:
    """CodeCarbon at its pace on the same cards; None, and why, where it is no match for us."""
    place = peer(CARBON_PACKAGE)
    if place is None:
        sys.stdout.write("  CodeCarbon could not be installed here: left out\n")
        yield None
        return
    with subprocess.Popen(
        [str(place / "python"), "-c", CARBON],
        env=bench.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        seen = process.stdout.readline().decode().strip() or "does not start; it saw none"
        if seen == str(GPUS):
            yield process
        else:
            sys.stdout.write(f"  CodeCarbon {seen} of {GPUS} GPUs: no comparison\n")
            yield None
        process.kill()


def steady(bench: Bench, seconds: float) -> None:
    """Meter, child and CodeCarbon at 1 Hz over the same seconds, and a meter whose command works."""
    rest, work = "sleep 3600 & sleep 3600 &", f"sleep 3600 & {sys.executable} -c '{TICKING}' &"
    with carbon(bench) as theirs, metered(bench, rest) as ours, metered(bench, work) as busy:
        pids = (*ours, *busy)
        before = [own_time(pid) for pid in pids]
        peers = asked(theirs) if theirs else 0.0
        wait(seconds)
        shares = [(own_time(p) - b) / seconds for p, b in zip(pids, before, strict=True)]
        share = (asked(theirs) - peers) / seconds if theirs else 0.0
        memory = [resident(pid) / 1e6 for pid in ours]
        if theirs:
            what = f"  CodeCarbon at 1 Hz: {share:.3%} of a core, "
            sys.stdout.write(f"{what}{resident(theirs.pid) / 1e6:.0f} MB resident\n")
    for name, meter, child in (("rests", *shares[:2]), ("works", *shares[2:])):
        sys.stdout.write(f"  the command {name}: meter {meter:.3%}, child {child:.3%} of a core\n")
        bench.tell(f"meter and child at 1 Hz, it {name}", meter + child, SHARE, "of a core")
    bench.tell("resident memory of the meter", memory[0], MEMORY_MB, "MB")
    bench.tell("resident memory of the child", memory[1], MEMORY_MB, "MB")
    if share:
        sys.stdout.write(f"  the child alone is {share / shares[1]:.2g} times cheaper than that\n")
        bench.least(
            "cheaper than CodeCarbon at 1 Hz, once started", share / sum(shares[:2]), CODECARBON
        )


def asked(process: subprocess.Popen[bytes]) -> float:
    """The processor seconds that it says it has used, ended threads included."""
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def life(bench: Bench, seconds: float) -> None:
    """Both around a command that sleeps, from first import to last word, children included."""
    place = peer(CARBON_PACKAGE)
    if place is None:
        return
    child_subreaper.become()  # the child that reads GPUs may outlive the meter: it is counted too
    ours = lived(bench, bench.metered("sleep", str(seconds)), 0)
    theirs = lived(bench, [str(place / "python"), "-c", CARBON], seconds)
    sys.stdout.write(f"  over a command of {seconds:g} s: ouvrage {ours:.2f} s of a core, ")
    sys.stdout.write(f"CodeCarbon {theirs:.2f} s\n")
    bench.least(f"cheaper than CodeCarbon over {seconds:g} s", theirs / ours, CODECARBON)


def lived(bench: Bench, words: list[str], seconds: float) -> float:
    """Processor seconds of a command and all that it started; its input ends after ``seconds``."""
    before = os.times()
    with subprocess.Popen(
        words,
        env=bench.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait(seconds)
        assert process.stdin
        process.stdin.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def main() -> int:
    """Everything, in order."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--life", type=float, default=60.0)
    given = parser.parse_args()
    if not (shutil.which("cc") or shutil.which("gcc")):
        sys.stdout.write("no C compiler to build the stand-in library with: not measured\n")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(os.path.join(directory, "home"))
        bench.environment |= build(Path(directory))
        sampling(bench, given.rounds)
        steady(bench, given.seconds)
        life(bench, given.life)
    return 1 if bench.missed else 0


if __name__ == "__main__":
    sys.exit(main())

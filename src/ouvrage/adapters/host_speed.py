"""How fast the cores and the memory of this machine are, by work that is the same everywhere.

Decides the work: compressing a fixed text with the zlib of this Python, in one process and in one for
each core that may be used; and copying between two buffers. The first is not what anybody computes, it
is what can be compared. Cores *delivered* are CPU seconds got for each second: what a hypervisor, a quota
or neighbours take is missing there, whatever the speed of a core.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from ouvrage.adapters.cgroup import PPM, Cgroup
from ouvrage.adapters.clock import monotonic_us, own_cpu_us
from ouvrage.adapters.kept_file import KeptFile, Room
from ouvrage.adapters.parent_death import end_with_the_parent
from ouvrage.adapters.procfs import HostCounters, cpu_model, memory_bytes, memory_field
from ouvrage.model.hosts import HostReading, reading
from ouvrage.model.runs import Host

TEXT_BYTES = 256 << 10
LEVEL = 6
MOST_PROCESSES = 512
US = 1_000_000
_TICK_US = US // os.sysconf("SC_CLK_TCK")
_LITTLE = Fraction(1, 20)
_COPY_BYTES = 128 << 20
WORK = f"zlib {zlib.ZLIB_RUNTIME_VERSION}, level {LEVEL}, on 256 KiB of numbers and their squares"


def this_host() -> Host:
    """The machine as a process on it is allowed to see it."""
    group = Cgroup(Room(0))
    return Host(
        cpu_model=cpu_model(),
        cpus_online=os.cpu_count(),
        cpus_allowed=len(os.sched_getaffinity(0)),
        cpu_quota_ppm=group.cpu_quota_ppm,
        memory_bytes=memory_bytes(),
        memory_limit_bytes=group.memory_limit_bytes,
        kernel=os.uname().release,
    )


def cpu_readings(alone_s: float, together_s: float) -> list[HostReading]:
    """One process for so many seconds, then one for each core. Forks: call it without threads."""
    text = fixed_text()
    done, _, cpu = _work(text, monotonic_us() + round(alone_s * US))
    speed = Fraction(done, max(1, cpu))  # bytes a microsecond are MB/s
    how = f"one process, by its CPU time in {alone_s:g} s: {WORK}"
    return [
        reading("cpu.thread", "MB/s", how, speed, speed),
        *_together(text, together_s),
    ]


def fixed_text() -> bytes:
    """The text that is compressed, the same everywhere."""
    return b" ".join(b"%d %d" % (n, n * n) for n in range(40_000))[:TEXT_BYTES]


def _work(text: bytes, until_us: int) -> tuple[int, int, int]:
    """Bytes compressed, and the microseconds on the wall and of the CPU that it took."""
    began, cpu, done = monotonic_us(), own_cpu_us(), 0
    while done == 0 or monotonic_us() < until_us:
        zlib.compress(text, LEVEL)
        done += len(text)
    return done, max(1, monotonic_us() - began), own_cpu_us() - cpu


def _together(text: bytes, seconds: float) -> list[HostReading]:
    allowed = Fraction(len(os.sched_getaffinity(0)))
    quota = Cgroup(Room(0)).cpu_quota_ppm
    if quota is not None:
        allowed = min(allowed, Fraction(quota, PPM))
    processes = max(1, min(ceil(allowed), MOST_PROCESSES))
    counters = HostCounters(Room(0))
    before, others = counters.read(), _visible_cpu_us(())
    found, pids = _forked(processes, text, seconds)
    after, others = counters.read(), _visible_cpu_us(pids) - others
    if not found:
        return [reading("cpu.delivered", "cores", "no process of the test came to its end")]
    wall = max(wall for _, wall, _ in found)
    speed = Fraction(sum(done for done, _, _ in found), wall)
    many = "1 process" if processes == 1 else f"{processes} processes"
    how = f"CPU seconds that {many} got each second, for {seconds:g} s"
    got = Fraction(sum(cpu for _, _, cpu in found), wall)
    return [
        _delivered(got, Fraction(others, wall), allowed, processes, how),
        reading("cpu.all", "MB/s", f"{many} together: {WORK}", speed, speed),
        *_stolen(before, after),
    ]


def _delivered(
    got: Fraction, taken: Fraction, allowed: Fraction, processes: int, how: str
) -> HostReading:
    """Cores got; what one's own other processes took might have been got too, up to what is allowed."""
    idle = max(Fraction(0), allowed - processes)
    if taken < _LITTLE and not idle:
        return reading("cpu.delivered", "cores", how, got, got)
    if taken >= _LITTLE:
        how = f"other processes here took {float(taken):.2f} cores; {how}"
    high = max(got, min(allowed, got + max(Fraction(0), taken) + idle))
    return reading("cpu.delivered", "cores", how, got, high)


def _forked(
    count: int, text: bytes, seconds: float
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """What each of so many processes did between one moment and another, and their numbers."""
    wait, go = os.pipe()
    answers, answer = os.pipe()
    pids = [_fork(text, seconds, (wait, go), (answers, answer)) for _ in range(count)]
    for descriptor in (wait, go, answer):
        os.close(descriptor)
    with os.fdopen(answers, "rb") as lines:
        found = [tuple(json.loads(line)) for line in lines]
    for pid in pids:
        os.waitpid(pid, 0)
    return [each for each in found if len(each) == 3], pids


def _fork(text: bytes, seconds: float, start: tuple[int, int], end: tuple[int, int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        end_with_the_parent()
        os.close(start[1])
        os.read(start[0], 1)  # all begin when the last writer has let go
        did = _work(text, monotonic_us() + round(seconds * US))
        os.write(end[1], json.dumps(did).encode() + b"\n")
    finally:
        os._exit(0)


def _visible_cpu_us(but: Iterable[int]) -> int:
    """CPU time of every process that can be seen from here, this one and its children left out.

    With that of children that were waited for, since most processes of a busy machine live shorter
    than the test: what they used stands with their parents afterwards.
    """
    left_out = {str(os.getpid()), *map(str, but)}
    total = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or name in left_out:
            continue
        words = (KeptFile(f"/proc/{name}/stat", Room(0)).read() or b"").rpartition(b")")[2].split()
        total += sum(map(int, words[11:15])) * _TICK_US
    return total


def _stolen(before: dict[str, int | None], after: dict[str, int | None]) -> list[HostReading]:
    """The share of the machine's time that a hypervisor gave to others."""
    names = ("host_busy_us", "host_idle_us", "host_iowait_us", "host_steal_us")
    parts = [(before[name], after[name]) for name in names]
    risen = [after - before for before, after in parts if before is not None and after is not None]
    if len(risen) < len(names) or sum(risen) <= 0:
        return []
    percent = 100 * Fraction(max(0, risen[3]), sum(risen))
    return [reading("cpu.steal", "%", "steal time in /proc/stat meanwhile", percent, percent)]


def memory_readings(seconds: float) -> list[HostReading]:
    """How fast one thread copies; buffers far larger than caches, far smaller than the memory left."""
    meminfo = KeptFile("/proc/meminfo", Room(0)).read()
    limits = (memory_field(meminfo, b"MemAvailable:"), Cgroup(Room(0)).memory_limit_bytes)
    least = min((size for size in limits if size is not None), default=_COPY_BYTES * 32)
    size = min(_COPY_BYTES, least // 32)
    if size < 8 << 20:
        return [
            reading("memory.copy", "GB/s", f"only {least >> 20} MiB of memory are left to test")
        ]
    source, target = memoryview(bytearray(b"\1") * size), memoryview(bytearray(size))
    target[:] = source  # the first time the kernel still has to find the pages
    began, copied = monotonic_us(), 0
    while copied == 0 or monotonic_us() - began < seconds * US:
        target[:] = source
        copied += size
    speed = Fraction(copied, (monotonic_us() - began) * 1000)
    how = f"one thread copying {size >> 20} MiB again and again; each byte is read and written"
    return [reading("memory.copy", "GB/s", how, speed, speed)]

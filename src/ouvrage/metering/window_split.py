"""How the time of one window is divided by what was sampled in it, where no span tells.

Weighs the kernel's counters against one another; every amount is inferred and the sum never
exceeds the time. What nothing speaks for is left over. Which windows, and what spans have told
already, is ``timeuse``'s matter.

The time in which any thread wanted a core is divided as the threads' own time was: so much on a
core, so much without one, so much stopped by the quota. Two processes that share one core work
half of the time each: the other half is a wait, though the core was never idle.
"""

from __future__ import annotations

from dataclasses import dataclass

from ouvrage.base.numbers import split_whole
from ouvrage.metering.gpu_time import GpuLoad
from ouvrage.model.runs import Host, RunWaits, RunWindow

LEAST_SEEN = 100
"""Run delay is scaled up from the threads it was read of to all only where those had at least a
hundredth of the processor time: fewer are too few to speak for the rest."""
FAULT_US = 20_000
"""A page is read back within this time even from a busy disk that must move its heads. So few
faults are no long wait, whatever pressure other programs put on the machine's memory."""
TRICKLE_BYTES_PER_S = 16_384
"""A connection over which less than this flows (an old telephone line carried half of it) is not
held up by the network: the other end has nothing to say, for reasons that are not seen from here."""
SAMPLE_RULE = (
    "samples of the process tree: time in which a thread wanted a core is divided as the threads' "
    "own time was, into computing, waiting for a core (run delay, scaled up to processes too "
    "short-lived to be read, while no core that the run may use was idle) and throttled (the cgroup's counter, or the share of its periods in "
    "which the quota ran out); of the rest, and of kernel time, waiting for memory by its pressure "
    "while pages were faulted in, and by the share of bytes read back after they had been thrown "
    "out; of the rest, for storage by block-I/O delay or uninterruptible sleep while bytes were "
    "read or written (of the samples in which nothing ran), for the network while a thread slept at a connection to another machine and "
    "16 kB a second or more flowed; unknown otherwise"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What speaks for the waits of a window, in microseconds, none negative.

    ``active``: at least one thread had a core; ``cpu`` and ``kernel``: processor time of all, and
    the kernel's part; ``delayed``, ``stopped``: thread time without a core, and under the quota.
    ``memory``, ``storage``, ``network``: at least one thread waited so.
    """

    active: int
    cpu: int
    kernel: int
    delayed: int
    stopped: int
    memory: int
    storage: int
    network: int


def signs_of(window: RunWindow, waits: RunWaits | None, host: Host) -> Signs | None:
    """The signs of a window; None where not even its processor time is known."""
    if window.active_us is None:
        return None
    active = max(0, window.active_us)
    kernel = max(0, window.cpu_system_us or 0)
    cpu = max(active, max(0, window.cpu_user_us or 0) + kernel)
    delay = _all_delay(window, waits, cpu)
    stopped = _stopped(window, waits, host, cpu, delay)
    memory, storage = _memory_and_storage(window, waits)
    return Signs(
        active=active,
        cpu=cpu,
        kernel=min(kernel, cpu),
        delayed=_short_of_cores(window, host, active, max(0, delay - stopped)),
        stopped=stopped,
        memory=memory,
        storage=storage,
        network=_network(window, waits),
    )


def _all_delay(window: RunWindow, waits: RunWaits | None, cpu: int) -> int:
    delay = max(0, window.run_delay_us or 0)
    seen = (waits.delay_cpu_us or 0) if waits else 0
    return delay * cpu // seen if 0 < seen < cpu <= seen * LEAST_SEEN else delay


def _stopped(window: RunWindow, waits: RunWaits | None, host: Host, cpu: int, delay: int) -> int:
    """Thread time that the quota took.

    The kernel's counter starts late and, on several cores, knows no threads. So where periods end
    stopped, they lasted ``1 - quota / cores`` of their length too long for every thread there was.
    """
    counted = max(0, window.throttled_us or 0)
    length, quota = window.to_us - window.from_us, host.cpu_quota_ppm
    periods = (waits.quota_periods or 0) if waits else 0
    ended = min((waits.quota_stopped or 0) if waits else 0, periods)
    if quota is None or ended <= 0 or length <= 0:
        return counted
    threads = cpu + delay
    cores_ppm = min(threads * 1_000_000 // length, host.cpus_allowed * 1_000_000)
    if cores_ppm <= quota:
        return counted
    lost = threads * ended // periods * (cores_ppm - quota) // cores_ppm
    return max(counted, min(delay, lost))


def _short_of_cores(window: RunWindow, host: Host, active: int, delayed: int) -> int:
    """Run delay that more cores would have saved.

    Where the run may use every core and one of them was idle, a thread that waits beside one that
    works is being handed a lock or moved to that core, not short of one.
    """
    alone = min(delayed, max(0, window.covered_us - active))
    length = window.to_us - window.from_us
    if window.host_idle_us is None or host.cpus_allowed != host.cpus_online or length <= 0:
        return delayed
    idle = max(0, window.host_idle_us) + max(0, window.host_iowait_us or 0)
    return alone + (delayed - alone) * max(0, length - idle) // length


def _memory_and_storage(window: RunWindow, waits: RunWaits | None) -> tuple[int, int]:
    """Waiting for pages that were thrown out is for want of memory; other reads are the disk's."""
    moved = max(0, window.read_bytes or 0) + max(0, window.write_bytes or 0)
    blocked = _of_sleep(window, waits, window.blocked_us)
    stuck = max(0, window.blkio_delay_us or 0, blocked) if moved else 0
    back = min(max(0, (waits.refaulted_bytes or 0) if waits else 0), moved)
    again = stuck * back // moved if moved else 0
    pressed = max(0, window.psi_memory_us or 0)
    pressed = min(pressed, max(0, window.major_faults or 0) * FAULT_US)
    return max(again, pressed), stuck - again


def _of_sleep(window: RunWindow, waits: RunWaits | None, seen: int | None) -> int:
    """A sort of sleep that was seen, as a share of the samples that tell of sleep at all.

    A program that a timer of the disk's or the network's wakes is often at work at the very tick
    that wakes the meter, so that its sleep is seen too seldom.
    """
    seen, length = max(0, seen or 0), window.to_us - window.from_us
    telling = length - max(0, (waits.running_us or 0) if waits else 0)
    return seen * length // telling if 0 < seen <= telling else seen


def _network(window: RunWindow, waits: RunWaits | None) -> int:
    asleep = _of_sleep(window, waits, waits.network_us if waits else None)
    flowed = max(0, window.net_rx_bytes or 0) + max(0, window.net_tx_bytes or 0)
    length = max(1, window.to_us - window.from_us)
    return asleep if flowed * 1_000_000 >= TRICKLE_BYTES_PER_S * length else 0


def split(window: RunWindow, signs: Signs) -> dict[str, int]:
    """A window's covered time by ``SAMPLE_RULE``; the rest stays unknown."""
    threads = (signs.cpu, signs.stopped, signs.delayed)
    wanted = min(max(0, window.covered_us), signs.active + signs.delayed + signs.stopped)
    rest = max(0, window.covered_us) - wanted
    shares = split_whole(wanted, threads) if any(threads) else threads
    by: dict[str, int] = dict(zip(("computing", "throttled", "waiting_cpu"), shares, strict=True))
    idle = min(signs.memory, rest)
    reclaim = by["computing"] * signs.kernel // signs.cpu if signs.cpu else 0
    reclaim = min(signs.memory - idle, reclaim)
    by["computing"] -= reclaim
    by["waiting_memory"] = idle + reclaim
    rest -= idle
    for name, amount in (("waiting_storage", signs.storage), ("waiting_network", signs.network)):
        by[name] = min(amount, rest)
        rest -= by[name]
    return by


def split_with_gpu(window: RunWindow, signs: Signs | None, load: GpuLoad) -> dict[str, int]:
    """The GPUs' part of a window by ``GPU_RULE``; what is left over stays unknown."""
    length = window.to_us - window.from_us

    def part(amount: int) -> int:
        return min(amount * load.covered // length, load.covered)

    by = {"computing": load.busy - load.slowed, "throttled": load.slowed}
    rest = load.covered - load.busy
    if signs is None:
        return by
    loaded = 0
    for key, amount in (
        ("throttled", part(signs.stopped)),
        ("waiting_data", max(0, part(signs.active) - load.busy)),
        ("waiting_memory", part(signs.memory)),
        ("waiting_storage", part(signs.storage)),
        ("waiting_network", part(signs.network)),
        ("waiting_data", part(signs.active)),
        ("waiting_cpu", part(signs.delayed)),
    ):
        taken = max(0, min(amount - (loaded if key == "waiting_data" else 0), rest))
        by[key] = by.get(key, 0) + taken
        loaded += taken if key == "waiting_data" else 0
        rest -= taken
    return by

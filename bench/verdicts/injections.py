"""What is put around a run to hold it up, by the kernel's own means, and taken away after it.

``around`` builds the place a case asks for: control groups (version 1 or 2), a network namespace
behind a shaped link, swap in compressed memory, neighbours on its core, the stand-in for a GPU.
Whatever cannot be made here raises ``Impossible`` with the reason; nothing is pretended. All of it
needs root, is named after ``NAME`` and is removed however the run ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.gpus import compiled
from bench.verdicts.made import BLOB, MB

NAME = f"ouvrage-verdicts-{os.getpid()}"
ROOT = Path("/sys/fs/cgroup")
HERE, THERE = (f"10.213.{os.getpid() % 250}.{end}" for end in (1, 2))
LINK, INSIDE = f"ov{os.getpid()}a", f"ov{os.getpid()}b"
CONTROLLERS = {
    "cpu": ("quota",),
    "cpuset": ("cores",),
    "io": ("read_mb_s", "write_mb_s", "read_iops"),
    "memory": ("memory_mb",),
}
_ENTER = (
    'while [ "$1" != -- ]; do echo $$ >"$1/cgroup.procs" || exit 99; shift; done; shift; exec "$@"'
)
_HOG = "while True: pass"


class Impossible(Exception):
    """This cannot be injected on this machine, and why."""


@dataclass(slots=True)
class Place:
    """How to start a command there, what to add to its words and environment, and who stands by."""

    prefix: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    helpers: list[subprocess.Popen[str]] = field(default_factory=list)


@contextlib.contextmanager
def around(limits: dict[str, float], directory: Path) -> Iterator[Place]:
    """The place that these limits describe. Raises ``Impossible``."""
    place = Place()
    with contextlib.ExitStack() as stack:
        if "swap_mb" in limits:
            stack.enter_context(_swap(int(limits["swap_mb"])))
        groups = stack.enter_context(_groups(limits, directory))
        if groups:
            place.prefix += ["sh", "-c", _ENTER, "sh", *map(str, groups), "--"]
        if {"network", "mbit_s"} & limits.keys():
            stack.enter_context(_network(limits, directory, place))
        if "card" in limits:
            _card(directory, place)
        for _ in range(int(limits.get("neighbours", 0))):
            words = ["taskset", "-c", str(_core()), sys.executable, "-c", _HOG]
            stack.enter_context(_standing_by(words, place))
        yield place


@contextlib.contextmanager
def _standing_by(words: list[str], place: Place) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    place.helpers.append(process)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _core() -> int:
    return max(os.sched_getaffinity(0))


# --- control groups


def modern() -> bool:
    """Whether this machine has version 2 only."""
    return (ROOT / "cgroup.controllers").is_file()


@contextlib.contextmanager
def _groups(limits: dict[str, float], directory: Path) -> Iterator[list[Path]]:
    """The groups, one for all in version 2, one a controller in version 1."""
    wanted = [name for name, keys in CONTROLLERS.items() if limits.keys() & set(keys)]
    made: list[Path] = []
    try:
        for controller in wanted:
            path = _group(controller)
            if path not in made:
                made.append(path)
            for file, value in _settings(controller, limits, directory):
                _put(path / file, value)
        yield made
    finally:
        for path in made:
            _remove(path)


def _group(controller: str) -> Path:
    if modern():
        held = (ROOT / "cgroup.controllers").read_text().split()
        if controller not in held:
            raise Impossible(f"the control group has no {controller} controller")
        _put(ROOT / "cgroup.subtree_control", f"+{controller}")
        path = ROOT / NAME
    else:
        parent = ROOT / ("blkio" if controller == "io" else controller)
        if not (parent / "cgroup.procs").is_file():
            raise Impossible(f"the {controller} controller is not mounted")
        path = parent / NAME
    with contextlib.suppress(FileExistsError):
        path.mkdir()
    return path


def _remove(path: Path) -> None:
    """Take a group away; what may still stand in it is moved up first."""
    for pid in (path / "cgroup.procs").read_text().split():
        with contextlib.suppress(OSError):
            (path.parent / "cgroup.procs").write_text(pid)
    path.rmdir()


def _settings(
    controller: str, limits: dict[str, float], directory: Path
) -> Iterator[tuple[str, str]]:
    if controller == "cpu":
        yield ("cpu.weight", "10000") if modern() else ("cpu.shares", "262144")
        quota = round(limits["quota"] * 100_000)
        yield ("cpu.max", f"{quota} 100000") if modern() else ("cpu.cfs_quota_us", str(quota))
    elif controller == "cpuset":
        yield "cpuset.mems", (ROOT / _top("cpuset.mems")).read_text().strip() or "0"
        yield "cpuset.cpus", str(_core())
    elif controller == "memory":
        size = str(round(limits["memory_mb"] * MB))
        yield ("memory.max" if modern() else "memory.limit_in_bytes"), size
    else:
        yield from _disk_settings(limits, _disk(directory))


def _top(name: str) -> str:
    return f"{name}.effective" if modern() else f"cpuset/{name}"


def _disk_settings(limits: dict[str, float], disk: str) -> Iterator[tuple[str, str]]:
    known = {
        "read_mb_s": ("rbps", "read_bps_device", MB),
        "write_mb_s": ("wbps", "write_bps_device", MB),
        "read_iops": ("riops", "read_iops_device", 1),
    }
    for key, (word, file, scale) in known.items():
        if key in limits:
            value = round(limits[key] * scale)
            if modern():
                yield "io.max", f"{disk} {word}={value}"
            else:
                yield f"blkio.throttle.{file}", f"{disk} {value}"


def _disk(directory: Path) -> str:
    """``major:minor`` of the whole disk below a directory."""
    number = directory.stat().st_dev
    found = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not found.exists():
        raise Impossible("the working folder lies on no block device that can be slowed")
    found = found.resolve()
    if (found / "partition").is_file():
        found = found.parent
    return (found / "dev").read_text().strip()


def _put(path: Path, value: str) -> None:
    try:
        path.write_text(value)
    except OSError as error:
        raise Impossible(f"{path.name} cannot be set: {error.strerror}") from error


# --- network, swap, card


def _called(*words: str) -> None:
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Impossible(f"{words[0]} is not installed") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Impossible(f"{words[0]} {words[1]}: {said[-1] if said else done.returncode}")


@contextlib.contextmanager
def _network(limits: dict[str, float], directory: Path, place: Place) -> Iterator[None]:
    """A namespace behind a pair of interfaces, shaped on both ends where the case asks."""
    try:
        _called("ip", "netns", "add", NAME)
        _called("ip", "link", "add", LINK, "type", "veth", "peer", "name", INSIDE, "netns", NAME)
        _called("ip", "addr", "add", f"{HERE}/30", "dev", LINK)
        _called("ip", "link", "set", LINK, "up")
        _called("ip", "-n", NAME, "addr", "add", f"{THERE}/30", "dev", INSIDE)
        _called("ip", "-n", NAME, "link", "set", INSIDE, "up")
        _called("ip", "-n", NAME, "link", "set", "lo", "up")
        if "mbit_s" in limits:
            shape = ["root", "tbf", "rate", f"{limits['mbit_s']:g}mbit"]
            shape += ["burst", "32k", "latency", "200ms"]
            _called("tc", "qdisc", "add", "dev", LINK, *shape)
            _called("tc", "-n", NAME, "qdisc", "add", "dev", INSIDE, *shape)
        serve = [sys.executable, "-m", "bench.verdicts.server", HERE, str(directory / BLOB)]
        serve.append(f"{limits.get('think_s', 0.3):g}")
        with _standing_by(serve, place) as server:
            port = server.stdout.readline().strip() if server.stdout else ""
            place.prefix += ["ip", "netns", "exec", NAME]
            place.words.append(f"at={HERE}:{port}")
            yield
    finally:
        for words in (("ip", "netns", "del", NAME), ("ip", "link", "del", LINK)):
            with contextlib.suppress(Impossible):
                _called(*words)


@contextlib.contextmanager
def _swap(size_mb: int) -> Iterator[None]:
    """Swap in compressed memory: what is thrown out costs time as a slow disk's would not."""
    held = Path("/sys/block/zram0/disksize")
    if not held.is_file():
        raise Impossible("there is no zram device to swap to")
    if held.read_text().strip() != "0":
        raise Impossible("the zram device is in use")
    try:
        _put(held, str(size_mb * MB))
        _called("mkswap", "/dev/zram0")
        _called("swapon", "/dev/zram0")
        yield
    finally:
        with contextlib.suppress(Impossible):
            _called("swapoff", "/dev/zram0")
        _put(held.with_name("reset"), "1")


def _card(directory: Path, place: Place) -> None:
    if not (shutil.which("cc") or shutil.which("gcc")):
        raise Impossible("there is no C compiler to build the stand-in for NVIDIA's library")
    library = directory / "nvml"
    if not library.is_dir():
        library.mkdir()
        compiled(library)
    state = directory / "card"
    state.write_text("count=1\n")
    place.environment |= {"LD_LIBRARY_PATH": str(library), "OUVRAGE_NVML_STATE": str(state)}

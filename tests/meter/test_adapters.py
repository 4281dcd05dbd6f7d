"""What is read from the kernel, against small trees of files that stand in for it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ouvrage.adapters.cgroup import Cgroup
from ouvrage.adapters.clock import new_id
from ouvrage.adapters.home import source_id
from ouvrage.adapters.kept_file import KeptFile, Room
from ouvrage.adapters.process_tree import AFRESH, PAGE, TICK_US, Births, ProcessTree, Rising
from ouvrage.adapters.procfs import HostCounters, cpu_model, memory_bytes
from ouvrage.base.errors import OuvrageError
from tests.support.meter import until


def put(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


def group(tmp_path: Path, membership: str, mounts: list[tuple[str, str, str]]) -> str:
    """A ``/proc`` whose process stands in these groups; mounts are (root, point, kind and options)."""
    lines = [
        f"{30 + n} 23 0:{n} {root} {tmp_path / point} rw - {words.split()[0]} x {words.split()[-1]}"
        for n, (root, point, words) in enumerate(mounts)
    ]
    return put(
        tmp_path / "proc",
        {"self/cgroup": membership, "self/mountinfo": "\n".join(lines) + "\n"},
    )


def test_second_hierarchy_the_tightest_level_holds(tmp_path: Path) -> None:
    proc = group(tmp_path, "0::/pod/box\n", [("/", "cg", "cgroup2 rw")])
    put(tmp_path / "cg", {
        "pod/cpu.max": "150000 100000\n", "pod/cpu.stat": "usage_usec 9\nthrottled_usec 77\n",
        "pod/memory.max": "1000\n", "pod/box/cpu.max": "max 100000\n",
        "pod/box/cpu.stat": "usage_usec 9\nthrottled_usec 5\n",
        "pod/box/memory.max": "max\n", "pod/box/memory.current": "640\n",
    })  # fmt: skip
    found = Cgroup(Room(9), proc)
    assert (found.cpu_quota_ppm, found.memory_limit_bytes) == (1_500_000, 1000)
    assert (found.throttling()["throttled_us"], found.memory_bytes()) == (77, 640)


def test_first_hierarchy_as_a_container_sees_it(tmp_path: Path) -> None:
    """The group's path is the host's; what is mounted here is the container's own part of it."""
    proc = group(
        tmp_path,
        "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
        [
            ("/docker/abc", "cpu", "cgroup rw,cpu,cpuacct"),
            ("/docker/abc", "mem", "cgroup rw,memory"),
        ],
    )
    put(tmp_path, {
        "cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n",
        "cpu/cpu.stat": "nr_periods 1\nnr_throttled 1\nthrottled_time 3000000\n",
        "mem/memory.limit_in_bytes": "9223372036854771712\n", "mem/memory.usage_in_bytes": "12\n",
    })  # fmt: skip
    found = Cgroup(Room(9), proc)
    assert (found.cpu_quota_ppm, found.memory_limit_bytes) == (500_000, None)
    assert (list(found.throttling().values()), found.memory_bytes()) == ([3000, 1, 1], 12)


def test_no_group_at_all_is_unknown_and_not_zero(tmp_path: Path) -> None:
    found = Cgroup(Room(9), str(tmp_path))
    assert (found.cpu_quota_ppm, found.memory_limit_bytes) == (None, None)
    assert (found.throttling()["throttled_us"], found.memory_bytes()) == (None, None)


HOST = {
    "stat": "cpu  100 1 50 900 30 2 3 4 0 0\ncpu0 1 1 1 1\nintr 1\n",
    "meminfo": "MemTotal:        2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n",
    "pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0 total=9\n",
    "diskstats": " 254 0 vda 1 0 10 0 1 0 20 0 0 0 0\n 254 1 vda1 1 0 10 0 1 0 20 0 0 0 0\n"
    " 7 0 loop0 9 9 9 9 9 9 9 9 9 9 9\n",
    "net/dev": "Inter-|\n face |\n    lo: 5 0 0 0 0 0 0 0 5 0\n  eth0: 70 0 0 0 0 0 0 0 80 0\n"
    " veth1: 7 0 0 0 0 0 0 0 8 0\n",
    "cpuinfo": "processor\t: 0\nmodel name\t: A Processor\n",
}


def test_host_counters(tmp_path: Path) -> None:
    proc = put(tmp_path / "proc", HOST)
    sys = put(
        tmp_path / "sys",
        {
            "block/vda/size": "",
            "block/loop0/size": "",
            "class/net/eth0/device/x": "",
            "class/net/lo/x": "",
        },
    )
    values = HostCounters(Room(9), proc, sys).read()
    assert values["host_busy_us"] == 156 * TICK_US
    assert (values["host_idle_us"], values["host_steal_us"]) == (900 * TICK_US, 4 * TICK_US)
    assert values["memory_available_bytes"] == 1024 * 1024
    assert (values["psi_cpu_us"], values["psi_io_us"]) == (123, None)
    assert (values["disk_read_bytes"], values["disk_write_bytes"]) == (5120, 10240)
    assert (values["net_rx_bytes"], values["net_tx_bytes"]) == (70, 80)
    assert (cpu_model(proc), memory_bytes(proc)) == ("A Processor", 2048 * 1024)


def test_a_host_that_tells_nothing_is_unknown(tmp_path: Path) -> None:
    values = HostCounters(Room(9), str(tmp_path), str(tmp_path)).read()
    assert set(values.values()) == {None}
    assert (cpu_model(str(tmp_path)), memory_bytes(str(tmp_path))) == (None, None)


def stat(pid: int, parent: int, user: int, *, state: str = "S", threads: int = 1) -> str:
    numbers = [parent, 1, 1, 0, -1, 0, 0, 0, 2, 1, user, 10, 5, 5, 20, 0, threads, 0, 99, 4096, 3]
    return f"{pid} (odd ) name) {state} " + " ".join(map(str, numbers + [0] * 30)) + "\n"


def process(
    root: Path, pid: int, parent: int, user: int, delay_ns: int = 0, **more: object
) -> None:
    status = "Name:\tx\nState:\tS\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n"
    put(root, {
        f"{pid}/stat": stat(pid, parent, user, **more),  # type: ignore[arg-type] -- made up by the test
        f"{pid}/io": "rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 512\nwrite_bytes: 1024\n",
        f"{pid}/task/{pid}/schedstat": f"1000000 {delay_ns} 1\n",
        f"{pid}/task/{pid}/status": status,
    })  # fmt: skip


def remove(root: Path, pid: int) -> None:
    for path in sorted((root / str(pid)).rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()


def test_a_tree_is_its_descendants_and_nobody_else(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100, 1_000_000)
    process(tmp_path, 11, 10, 50, 2_000_000)
    process(tmp_path, 12, 1, 7000)
    tree = ProcessTree(1000, Room(0), str(tmp_path))
    tree.add(10)
    values = tree.read()
    assert values["processes"] == 2
    assert values["cpu_user_us"] == (100 + 5 + 50 + 5) * TICK_US
    assert values["run_delay_us"] == 3000
    assert (values["read_bytes"], values["write_bytes"]) == (1024, 2048)
    assert (values["ctx_voluntary"], values["ctx_involuntary"]) == (6, 8)
    assert (values["rss_bytes"], values["major_faults"]) == (6 * PAGE, 6)


def test_what_a_vanished_thread_waited_stays_in_the_sum(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100, 1_000_000)
    process(tmp_path, 11, 10, 50, 2_000_000)
    tree = ProcessTree(1000, Room(0), str(tmp_path))
    tree.add(10)
    assert tree.read()["run_delay_us"] == 3000
    remove(tmp_path, 11)
    values = tree.read()
    assert values["run_delay_us"] == 3000
    assert values["processes"] == 1


def test_of_a_process_that_did_not_run_nothing_else_is_read(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100, 1_000_000)
    tree = ProcessTree(1000, Room(0), str(tmp_path))
    tree.add(10)
    first = tree.read()
    process(tmp_path, 10, 1, 900, 1_000_000)
    process(tmp_path, 11, 10, 50)
    assert tree.read() == first, "its thread did not run, so nobody was started either"
    process(tmp_path, 10, 1, 900, 2_000_000)
    until(lambda: tree.read()["processes"] == 2, "the next listing")
    values = tree.read()
    assert values["cpu_user_us"] == (900 + 5 + 50 + 5) * TICK_US
    assert (values["run_delay_us"], values["processes"]) == (2000, 2)


def test_the_memory_of_one_at_rest_is_looked_at_all_the_same(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100)
    tree = ProcessTree(1000, Room(0), str(tmp_path))
    tree.add(10)
    assert tree.read()["rss_bytes"] == 3 * PAGE
    path = tmp_path / "10/stat"
    path.write_text(path.read_text().replace(" 4096 3 ", " 4096 7 "))
    seen = [tree.read()["rss_bytes"] for _ in range(AFRESH)]
    assert (seen[0], seen[-1]) == (3 * PAGE, 7 * PAGE)


def test_where_the_kernel_counts_no_time_on_a_core_everything_is_read(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100)
    (tmp_path / "10/task/10/schedstat").write_text("0 0 0\n")
    tree = ProcessTree(1000, Room(0), str(tmp_path))
    tree.add(10)
    before = tree.read()["cpu_user_us"]
    (tmp_path / "10/stat").write_text(stat(10, 1, 900))
    assert (before, tree.read()["cpu_user_us"]) == (105 * TICK_US, 905 * TICK_US)


def test_one_that_waits_for_a_core_is_seen_until_it_sleeps(tmp_path: Path) -> None:
    process(tmp_path, 10, 1, 100)
    path = tmp_path / "10/task/10/status"
    asleep = path.read_text()
    path.write_text(asleep.replace("\tS", "\tR"))
    tree = ProcessTree(1000, Room(0), str(tmp_path))
    tree.add(10)
    assert [tree.read()["running"], tree.read()["running"]] == [1, 1]
    path.write_text(asleep)
    assert tree.read()["running"] == 0


def test_a_sum_that_must_not_fall_is_held_and_then_goes_on_rising() -> None:
    rising = Rising()
    assert [rising.take(raw) for raw in (100, 150, 60, 160)] == [100, 150, 150, 160]
    lost = Rising()
    assert [lost.take(raw) for raw in (100, 40, 50, 60)] == [100, 100, 100, 110]


def test_a_file_is_kept_open_only_while_there_is_room(tmp_path: Path) -> None:
    put(tmp_path, {"a": "1", "b": "2"})
    room = Room(1)
    first, second = KeptFile(f"{tmp_path}/a", room), KeptFile(f"{tmp_path}/b", room)
    assert (first.read(), second.read(), room.left) == (b"1", b"2", 0)
    first.close()
    assert (second.read(), room.left) == (b"2", 0)
    second.close()
    assert room.left == 1
    assert KeptFile(f"{tmp_path}/none", room).read() is None


def test_what_the_kernel_hands_out_by_the_page_is_read_to_its_end(tmp_path: Path) -> None:
    """Of a long list of the kernel's own, one reading gives a page at most."""
    maps = "/proc/self/maps"
    with open(maps, "rb", buffering=0) as file:
        assert len(file.read(100_000)) < 8192
    table, whole = KeptFile(maps, Room(1)).read() or b"", Path(maps).read_bytes()
    assert len(table) > 8192
    assert table.splitlines()[-1] == whole.splitlines()[-1]
    put(tmp_path, {"long": "x" * 300_000, "short": "y" * 2048})
    assert len(KeptFile(f"{tmp_path}/long", Room(1)).read() or b"") == 262_144
    short = KeptFile(f"{tmp_path}/short", Room(1))
    assert [len(short.read() or b""), len(short.read() or b"")] == [2048, 2048]
    assert KeptFile(f"{tmp_path}/long", Room(0), 100).read() == b"x" * 100


def test_one_source_however_many_come_first(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(source_id(tmp_path / "home")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["source"]


def test_a_spoilt_source_is_refused(tmp_path: Path) -> None:
    put(tmp_path, {"source": "nothing\n"})
    with pytest.raises(OuvrageError, match="source id"):
        source_id(tmp_path)


def test_ids_are_version_seven_and_rise() -> None:
    ids = [new_id() for _ in range(50)]
    assert all(one[12] == "7" and one[16] in "89ab" for one in ids)
    assert [one[:12] for one in ids] == sorted(one[:12] for one in ids)


def test_nothing_is_listed_while_nobody_was_born(tmp_path: Path) -> None:
    def last(number: str) -> None:
        (tmp_path / "loadavg").write_text(f"0.1 0.2 0.3 1/100 {number}\n")

    births = Births(Room(0), str(tmp_path))
    assert births.any()  # no such file: it cannot be told
    last("4711")
    assert [births.any(), births.any(), births.any()] == [True, False, False]
    last("4712")
    assert [births.any(), births.any()] == [True, False]
    last("0")
    assert [births.any(), births.any()] == [True, True]

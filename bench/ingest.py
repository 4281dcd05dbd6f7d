"""What it costs a server to take in the telemetry of a fleet, and what those who look at pages feel of it.

A real server, held to one core, with SQLite that waits for the disk. First 1,000 agents post every ten seconds a batch of ten moments of
eight GPUs and their node, while somebody asks for lists and makes projects. Then the same samples are sent as they are here and as a batch
of CloudEvents, one event a sample, to the same server in turns: the same keys, a queue and a file of the same kind; only what is sent differs.
That is done with posts of 999 samples, as an agent sends them that makes up for an absence, and with posts of 90, in which the cost of any
request to any address outweighs the rest. The bar is held by the former.
The events are read with orjson where it is installed, the quickest there is, and judged no further than their required attributes, their
identity and their time. The clients run on another core. Ratios are of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ouvrage.wire.samples import GPU, Batch, encode

try:
    import orjson  # pyright: ignore[reportMissingImports] -- a peer, not a dependency
except ModuleNotFoundError:
    orjson = None

GPUS, MOMENTS, EVERY_S = 8, 10, 10.0
LONG = 111
"""Moments of a batch that makes up for a while without a server: 999 samples."""
MOST_P99_MS, MOST_CPU, MOST_BYTES = 100.0, 0.5, 0.2
START_US = 1_790_000_000_000_000
EVENTS = "/bench/cloudevents"
TURNS, POSTS, LONG_POSTS = 5, 300, 100


def main() -> int:
    """Measure and print; 1 where a bar is missed."""
    options = _options()
    with tempfile.TemporaryDirectory() as place:
        known = _prepare(Path(place), options.agents)
        command = [sys.executable, "-m", "bench.ingest", "--serve", place]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline())
                _pin(-1)
                return asyncio.run(_measured(port, server.pid, known, options))
            finally:
                server.terminate()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.ingest")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve)
        raise SystemExit(0)
    return options


def _pin(core: int) -> None:
    """Hold this process to one core, the first or (-1) the last; a machine of one shares it."""
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})


# The server


@dataclass(frozen=True)
class Known:
    """The owner's token, and each agent's key."""

    token: str
    keys: list[str]


def _platform(place: Path) -> Any:
    from ouvrage.server.context import Settings
    from ouvrage.server.serving import platform_of_state

    often = Settings(requests_a_second=1e6, requests_at_once=1e6)
    return platform_of_state(place, None, often)


def _prepare(place: Path, agents: int) -> Known:
    from ouvrage.server.credentials import new_secret
    from ouvrage.server.services.first_start import prepare
    from ouvrage.store.platform.people import NodeKeyRow, add_node_key

    keys: list[str] = []
    with _platform(place) as platform:
        token = prepare(platform).token_file.read_text("ascii").strip()
        with platform.writing() as tx:
            for _ in range(agents):
                made = new_secret(platform, "node key")
                keys.append(made.text)
                row = NodeKeyRow(
                    node_key=made.id, node=platform.ids(), hash=made.hash, created_us=tx.now_us
                )
                add_node_key(tx.connection, row)
    return Known(token, keys)


def _serve(place: Path) -> None:
    from ouvrage.server.serving import server_of, settle
    from ouvrage.server.starting import Listen, bound

    _pin(0)
    listen = Listen(host="127.0.0.1", port=0)
    with _platform(place) as platform, bound(listen) as sock:
        server = server_of(platform, listen)
        _take_events(server.config.app, platform)
        print(sock.getsockname()[1], flush=True)
        settle()
        server.run(sockets=[sock])


def _take_events(app: Any, platform: Any) -> None:
    """The peer: the same address in everything but what is sent to it."""
    from dataclasses import replace

    from fastapi import Request

    from ouvrage.server.access import NodeDep, body_of
    from ouvrage.server.app import intake_for
    from ouvrage.store.sample_frames import Frame
    from ouvrage.store.telemetry import Offered
    from ouvrage.wire.api import SamplesKept

    # A directory and a source of its own: events are no batches that could be sealed.
    apart = replace(platform, source="events", state_dir=platform.state_dir / "events")
    apart.state_dir.mkdir()
    intake = intake_for(apart)
    intake.start()

    async def receive(request: Request, actor: NodeDep) -> SamplesKept:
        content = await body_of(request)
        source, sequence, times = read_events(content)
        frame = Frame(node=actor.id, at_us=platform.clock(), content=content)
        offered = Offered(
            source=source, sequence=sequence, frame=frame, from_us=times[0], to_us=times[-1]
        )
        kept = await asyncio.wrap_future(intake.offer(offered))
        return SamplesKept(result=kept.result, sequence=kept.sequence)

    receive.__annotations__ = {"request": Request, "actor": NodeDep, "return": SamplesKept}
    app.post(EVENTS)(receive)


def read_events(content: bytes) -> tuple[str, int, list[int]]:
    """The source and number of a batch of events, and the moments, each event judged as the standard asks."""
    loads = orjson.loads if orjson else json.loads
    seen: set[tuple[str, str]] = set()
    times: list[int] = []
    columns: dict[str, list[int]] = {}
    for event in loads(content):
        key = (event["source"], event["id"])
        if event["specversion"] != "1.0" or not event["type"] or key in seen:
            raise ValueError("no event of its own")
        seen.add(key)
        times.append(round(datetime.fromisoformat(event["time"]).timestamp() * 1e6))
        for name, value in event["data"].items():
            if type(value) is not int:
                raise ValueError("no whole number")
            columns.setdefault(name, []).append(value)
    source, sequence, _ = next(iter(seen))[1].split("-")
    return source, int(sequence), times


# What is sent


def batch_of(agent: int, sequence: int, source: str, moments: int = MOMENTS) -> Batch:
    """Some seconds of a node that trains: figures that wander, counters that rise."""
    chance = random.Random(agent * 1000 + sequence)
    begin = START_US + sequence * moments * 1_000_000
    times = tuple(begin + n * 1_000_000 + chance.randrange(3000) for n in range(moments))
    gpu: dict[str, list[int | None]] = {name: [] for name in GPU}
    for card in range(GPUS):
        power, energy = 600_000, 10**12 + card * 10**9 + sequence * 6_000_000
        for _ in range(moments):
            power += chance.randrange(-20_000, 20_000)
            energy += power
            values = (chance.randrange(85, 100), 70_000 + card, power, energy, 60 + card % 3)
            for name, value in zip(GPU, values, strict=True):
                gpu[name].append(value)
    node: dict[str, list[int | None]] = {
        "cpu_permille": [300 + chance.randrange(20) for _ in times],
        "memory_mib": [400_000 + chance.randrange(50) for _ in times],
    }
    devices = tuple(f"GPU-{agent:08x}-1111-2222-3333-{card:012x}" for card in range(GPUS))
    return Batch(source=source, sequence=sequence, times=times, devices=devices, gpu=gpu, node=node)


def events_of(batch: Batch) -> bytes:
    """The same samples as CloudEvents, one event a sample, as one batch of JSON."""
    rows: list[tuple[str | None, int, dict[str, Any]]] = []
    for n, t in enumerate(batch.times):
        rows.append((None, t, {name: column[n] for name, column in batch.node.items()}))
        for card, device in enumerate(batch.devices):
            place = card * len(batch.times) + n
            rows.append((device, t, {name: values[place] for name, values in batch.gpu.items()}))
    said = [
        {
            "specversion": "1.0",
            "id": f"{batch.source}-{batch.sequence}-{number}",
            "source": f"node/{batch.source}",
            "type": "gpu.sample" if device else "node.sample",
            **({"subject": device} if device else {}),
            "time": datetime.fromtimestamp(t / 1e6).astimezone().isoformat(),
            "data": data,
        }
        for number, (device, t, data) in enumerate(rows)
    ]
    return json.dumps(said, separators=(",", ":")).encode()


# The clients


@dataclass
class Line:
    """One connection to the server; ``sent`` are the bytes that went out."""

    port: int
    sent: int = 0
    _ends: Any = field(default=None)

    async def ask(self, method: str, path: str, key: str, body: bytes, kind: str, more: str = ""):
        """The status of the answer, its body, and how long it took in seconds."""
        if self._ends is None:
            self._ends = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self._ends
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        )
        begun = time.perf_counter()
        writer.write(head.encode() + body)
        self.sent += len(head) + len(body)
        said = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        size = int(said.partition("content-length: ")[2].partition("\r\n")[0])
        answer = await reader.readexactly(size)
        return int(said[9:12]), answer, time.perf_counter() - begun

    def close(self) -> None:
        """End the connection."""
        if self._ends is not None:
            self._ends[1].close()


def cpu_s(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def waited_s(pid: int) -> float:
    """Seconds that threads of a process were ready and had no core."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text("ascii").split()[1]) for task in tasks) / 1e9


async def _measured(port: int, pid: int, known: Known, options: argparse.Namespace) -> int:
    quiet = await _interactive(port, known.token, 5.0, asyncio.Event())
    fleet = await _fleet(port, pid, known, options.seconds)
    long = [await _turn(port, pid, known, turn, LONG, LONG_POSTS) for turn in range(TURNS)]
    short = [await _turn(port, pid, known, TURNS + n, MOMENTS, POSTS) for n in range(TURNS)]
    return _say(options, quiet, fleet, long, short)


@dataclass(frozen=True)
class Fleet:
    """How long posts and interactive calls took; the share of a core the server had, and that it waited for while others had it."""

    posts: list[float]
    calls: list[float]
    core: float
    others: float
    refused: int


async def _fleet(port: int, pid: int, known: Known, seconds: float) -> Fleet:
    rounds = max(1, int(seconds / EVERY_S))
    posts: list[float] = []
    refused = 0
    over = asyncio.Event()

    async def agent(number: int, key: str) -> None:
        nonlocal refused
        line, source = Line(port), f"{number:032x}"
        await asyncio.sleep(EVERY_S * number / len(known.keys))
        for sequence in range(1, rounds + 1):
            content = encode(batch_of(number, sequence, source))
            begun = time.perf_counter()
            status, _, took = await line.ask(
                "POST", "/v1/samples", key, content, "application/gzip"
            )
            posts.append(took)
            refused += status != 200
            await asyncio.sleep(max(0.0, EVERY_S - (time.perf_counter() - begun)))
        line.close()

    began, used, waited = time.perf_counter(), cpu_s(pid), waited_s(pid)
    calls = asyncio.create_task(_interactive(port, known.token, 3600.0, over))
    await asyncio.gather(*(agent(number, key) for number, key in enumerate(known.keys)))
    took = time.perf_counter() - began
    core, others = (cpu_s(pid) - used) / took, (waited_s(pid) - waited) / took
    over.set()
    return Fleet(posts, await calls, core, others, refused)


async def _interactive(port: int, token: str, seconds: float, over: asyncio.Event) -> list[float]:
    """Somebody who asks ten times a second, every tenth time to change something; how long each took."""
    line, took, number = Line(port), list[float](), 0
    until = time.perf_counter() + seconds
    paths = ("/v1/me", "/v1/jobs", "/v1/nodes", "/v1/projects", "/v1/audit", "/v1/offers")
    while time.perf_counter() < until and not over.is_set():
        number += 1
        due = time.perf_counter() + 0.1
        if number % 10:
            asked = line.ask("GET", paths[number % len(paths)], token, b"", "application/json")
        else:
            name = f"p{time.perf_counter_ns()}"
            body = json.dumps({"name": name}).encode()
            more = f"Idempotency-Key: {name}\r\n"
            asked = line.ask("POST", "/v1/projects", token, body, "application/json", more)
        status, answer, each = await asked
        assert status < 300, answer
        took.append(each)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
    line.close()
    return took


@dataclass(frozen=True)
class Turn:
    """Processor time (s) and bytes of a sample, as it is sent here and as an event."""

    ours: tuple[float, float]
    events: tuple[float, float]


async def _turn(port: int, pid: int, known: Known, turn: int, moments: int, posts: int) -> Turn:
    ways: dict[str, tuple[float, float]] = {}
    order = ("ours", "events") if turn % 2 else ("events", "ours")
    for way in order:
        source = f"{'a' if way == 'ours' else 'b'}{turn:031x}"
        many = min(posts, len(known.keys))
        made = [batch_of(number, 1, source, moments) for number in range(many)]
        bodies = [encode(each) if way == "ours" else events_of(each) for each in made]
        path, kind = (
            ("/v1/samples", "application/gzip")
            if way == "ours"
            else (EVENTS, "application/cloudevents-batch+json")
        )
        lines = [Line(port) for _ in range(16)]
        used = cpu_s(pid)
        await asyncio.gather(
            *(
                _posts(line, path, kind, list(zip(known.keys, bodies, strict=False))[n::16])
                for n, line in enumerate(lines)
            )
        )
        samples = sum(each.samples for each in made)
        ways[way] = (
            (cpu_s(pid) - used) / samples,
            sum(line.sent for line in lines) / samples,
        )
    return Turn(ways["ours"], ways["events"])


async def _posts(line: Line, path: str, kind: str, sent: Sequence[tuple[str, bytes]]) -> None:
    for key, body in sent:
        status, answer, _ = await line.ask("POST", path, key, body, kind)
        assert status == 200, answer
    line.close()


# What is said


def _say(
    options: argparse.Namespace,
    quiet: list[float],
    fleet: Fleet,
    long: Sequence[Turn],
    short: Sequence[Turn],
) -> int:
    rows = (GPUS + 1) * MOMENTS
    rate = options.agents * rows / EVERY_S
    print(
        f"{options.agents:,} agents, {rows} samples from each every {EVERY_S:g} s: {rate:,.0f} a second,"
    )
    print("the server on one core, SQLite waiting for the disk:")
    print(f"  processor               {fleet.core:7.0%} of the core")
    print(f"  waited for the core     {fleet.others:7.0%} of the time, while other programs had it")
    print(f"  told to come back       {fleet.refused:7,} of {len(fleet.posts):,} posts")
    for name, took in (
        ("a batch is answered", fleet.posts),
        ("interactive calls", fleet.calls),
        ("those without agents", quiet),
    ):
        print(f"  {name:<22}  p50 {_ms(took, 0.5):6.1f} ms   p99 {_ms(took, 0.99):6.1f} ms")
    reader = "orjson" if orjson else "the standard library"
    print(
        f"a sample, of CloudEvents read with {reader}; medians of {TURNS} turns, all headers counted:"
    )
    for turns, samples in ((long, (GPUS + 1) * LONG), (short, rows)):
        ours, events = ([_middle(turns, way, n) for n in (0, 1)] for way in ("ours", "events"))
        print(
            f"  posts of {samples:<4} {ours[0] * 1e6:6.2f} µs and {ours[1]:5.1f} bytes"
            f"   an event {events[0] * 1e6:6.2f} µs and {events[1]:5.1f} bytes"
        )
    met = [
        _bar("interactive p99, ms", _ms(fleet.calls, 0.99), MOST_P99_MS),
        _bar("processor, of an event's", _ratio(long, 0), MOST_CPU),
        _bar("bytes, of an event's", _ratio(long, 1), MOST_BYTES),
    ]
    return 0 if all(met) and not fleet.refused else 1


def _middle(turns: Sequence[Turn], way: str, place: int) -> float:
    return statistics.median(getattr(turn, way)[place] for turn in turns)


def _ratio(turns: Sequence[Turn], place: int) -> float:
    return statistics.median(turn.ours[place] / turn.events[place] for turn in turns)


def _bar(name: str, found: float, most: float) -> bool:
    print(f"  {name:<26}{found:8.3g}, at most {most:g}: {'met' if found <= most else 'missed'}")
    return found <= most


def _ms(took: Sequence[float], share: float) -> float:
    ordered = sorted(took)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1e3


if __name__ == "__main__":
    sys.exit(main())

"""What NCCL says of itself: its INFO log, and the table that nccl-tests prints.

Decides what is evidence. Lines ``Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM`` say by which way a pair of
ranks spoke, ``Init COMPLETE`` how many ranks there were, ``AllReduce: opCount … count …`` which calls were
made (only with ``NCCL_DEBUG_SUBSYS=COLL``). None of them says how long anything took; nccl-tests does.
Forms are those of NCCL 2.4 to 2.28. Any bytes may come: what is no such line is not looked at.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from ouvrage.model.around import Calls, LinkRow, RunCommunication, RunLinkTest, Transport

MOST_KEPT = 4_096
_LONGEST_LINE = 4_096
_WHO = re.compile(r"(\S{1,255}):([0-9]{1,10}):[0-9]{1,10} \[[0-9]{1,4}\] NCCL INFO (.*)", re.S)
_VIA = re.compile(
    r"(?:Channel|Ring|Tree) ([0-9]{1,4})(?:/[0-9]{1,4})? ?: ([0-9]{1,6})(?:\[[0-9a-f]{1,12}\])?"
    r" -> ([0-9]{1,6})(?:\[[0-9a-f]{1,12}\])?(?: \[(send|receive)\])? via ([A-Za-z0-9_]{1,24})"
    r"(?:/([A-Za-z0-9_ ]{1,24}))?((?:/[A-Za-z0-9_()]{1,24}){0,3})"
)
_INIT = re.compile(r"comm \S+ rank [0-9]+ n[rR]anks ([0-9]{1,6})(?: nNodes ([0-9]{1,6}))?")
_VERSION = re.compile(r"NCCL version ([0-9][0-9A-Za-z.+-]{1,40})")
_RING = re.compile(r"Channel ([0-9]{1,4})/([0-9]{1,4}) *:((?: +[0-9]+){2,})\s*")
_CALL = re.compile(
    r"([A-Za-z]{3,24}): opCount [0-9a-f]+ sendbuff \S+ recvbuff \S+ count ([0-9]{1,18})"
    r" datatype ([0-9]{1,2}) op [0-9-]+ root [0-9-]+ comm \S+ \[nranks=([0-9]{1,6})"
)
_TYPE_BYTES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
"""``ncclDataType_t``: int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, two of fp8."""
_SPREAD = frozenset({"AllGather", "ReduceScatter", "AlltoAll", "Gather", "Scatter"})
"""Operations whose count is one rank's part: nccl-tests gives their whole."""
_SENDS = "P2P", "SHM", "NET", "COLLNET", "NVLS"


class NcclLog:
    """Takes the text of a log in pieces; ``said`` is what it amounts to, None where it was no log."""

    def __init__(self) -> None:
        self._rest = ""
        self._lines = 0
        self._ways: Counter[str] = Counter()
        self._pairs: dict[str, set[tuple[int, int]]] = {}
        self._heard: set[tuple[str, str]] = set()
        self._calls: dict[tuple[str, str], Counter[tuple[str, int, int]]] = {}
        self._ranks: int | None = None
        self._nodes: int | None = None
        self._library: str | None = None
        self._rings = 0
        self._nvls = False

    def feed(self, text: str) -> None:
        """More of the log; a line may be cut anywhere."""
        *lines, self._rest = (self._rest + text).split("\n")
        self._rest = self._rest[:_LONGEST_LINE]
        for line in lines:
            self.take(line[:_LONGEST_LINE])

    def finish(self) -> None:
        """The last line, where none ended it."""
        self.take(self._rest)
        self._rest = ""

    def take(self, line: str) -> None:
        """One line."""
        version = _VERSION.search(line)
        if version:
            self._library = version[1]
        found = _WHO.search(line)
        if not found:
            return
        self._lines += 1
        who, said = (found[1].rpartition("]:")[2], found[2]), found[3]
        if len(self._heard) < MOST_KEPT:
            self._heard.add(who)
        self._take(who, said)

    def _take(self, who: tuple[str, str], said: str) -> None:
        if match := _VIA.match(said):
            self._way(match)
        elif match := _CALL.match(said):
            self._call(who, match)
        elif match := _INIT.search(said):
            self._communicator(match)
        elif match := _RING.fullmatch(said):
            self._rings = max(self._rings, int(match[2]))
        elif said.startswith("NVLS comm ") or "NVLS channels" in said:
            self._nvls = self._nvls or not re.search(r"\b0 nvls channels", said)

    def _way(self, match: re.Match[str]) -> None:
        """One connection. A network tells it twice, sending and receiving: the sender's word counts."""
        if match[4] == "receive":
            return
        name = match[5] if match[6] is None else f"{match[5]}/{match[6].strip()}"
        if "GDRDMA" in (match[7] or ""):
            name += "/GDRDMA"
        if match[5] not in _SENDS or len(self._ways) > MOST_KEPT:
            return
        self._ways[name] += 1
        pairs = self._pairs.setdefault(name, set())
        if len(pairs) < MOST_KEPT:
            pairs.add((int(match[2]), int(match[3])))
        self._nvls = self._nvls or match[5] == "NVLS"

    def _call(self, who: tuple[str, str], match: re.Match[str]) -> None:
        kind, ranks = int(match[3]), int(match[4])
        if kind >= len(_TYPE_BYTES):
            return
        size = int(match[2]) * _TYPE_BYTES[kind] * (ranks if match[1] in _SPREAD else 1)
        counts = self._calls.setdefault(who, Counter()) if len(self._calls) < MOST_KEPT else None
        key = (match[1], size, ranks)
        if counts is not None and (key in counts or len(counts) < MOST_KEPT):
            counts[key] += 1

    def _communicator(self, match: re.Match[str]) -> None:
        ranks = int(match[1])
        if self._ranks is None or ranks >= self._ranks:
            self._ranks = ranks
            self._nodes = int(match[2]) if match[2] else self._nodes

    def said(self, run: str, source: str) -> RunCommunication | None:
        """What the log says; None where not one line of it was NCCL's."""
        if not self._lines:
            return None
        most = max(
            self._calls.values(), key=lambda counts: (counts.total(), sorted(counts)), default=None
        )
        return RunCommunication(
            run=run,
            source=source,
            library=self._library,
            ranks=self._ranks,
            nodes=self._nodes,
            heard=len(self._heard),
            nvls=self._nvls,
            rings=self._rings,
            transports=tuple(
                Transport(name=name, channels=many, pairs=len(self._pairs[name]))
                for name, many in sorted(self._ways.items(), key=lambda each: (-each[1], each[0]))
            ),
            calls=tuple(
                Calls(name=name, size_bytes=size, ranks=ranks, calls=many)
                for (name, size, ranks), many in sorted((most or Counter()).items())
            ),
        )


_OPERATION = re.compile(r"#\s*(?:Collective test starting: )?([a-z_]+)_perf\b")
_RANK = re.compile(r"#\s+Rank\s+([0-9]{1,6})\s.*?\bdevice\s+[0-9]+\s+\[[0-9a-fx:.]+\]\s+(.+)", re.I)
_ROW = re.compile(
    r"\s*([0-9]{1,16})\s+[0-9]{1,16}\s+[a-z0-9_]+\s+(?:[a-z]+|none)\s+-?[0-9]+"
    r"\s+([0-9.]{1,20})\s+[0-9.]{1,20}\s+([0-9.]{1,20})\s+(?:[0-9]+|N/A)"
)
_NAMES = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "reduce": "Reduce",
    "alltoall": "AlltoAll",
    "sendrecv": "SendRecv",
}
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


def link_test_in(
    text: str, *, run: str, source: str, operation: str = "AllReduce"
) -> RunLinkTest | None:
    """What nccl-tests measured out of place, by size; None where the text holds no such table.

    Its output does not name the operation before version 2.17: ``operation`` is taken then.
    """
    ranks: dict[int, str] = {}
    rows: dict[tuple[str, int], LinkRow] = {}
    for line in text.splitlines():
        if match := _RANK.match(line):
            ranks[int(match[1])] = match[2].strip()[:80]
        elif match := _OPERATION.search(line):
            operation = _NAMES.get(match[1], operation)
        elif (match := _ROW.match(line)) and len(rows) < MOST_KEPT and _plain(match[2], match[3]):
            key = (operation, int(match[1]))
            rows[key] = LinkRow(
                name=operation, size_bytes=key[1], time_us=match[2], bus_gb_s=match[3]
            )
    if len(ranks) < 2 or not rows:
        return None
    models = sorted(set(ranks.values()))
    return RunLinkTest(
        run=run,
        source=source,
        ranks=len(ranks),
        gpu=" and ".join(models)[:200],
        rows=tuple(rows[key] for key in sorted(rows)),
    )


def _plain(*texts: str) -> bool:
    return all(map(_DECIMAL.fullmatch, texts))


def time_of(test: RunLinkTest, name: str, size: int) -> tuple[Fraction, bool] | None:
    """Seconds of one call of a size by a test, and whether a measured size stood on both sides.

    Between two measured sizes by a straight line; beyond the largest in proportion; below the smallest
    the smallest's time, since latency does not shrink. None where the test did not do that operation.
    """
    known = [
        (row.size_bytes, Fraction(row.time_us) / 1_000_000) for row in test.rows if row.name == name
    ]
    if not known:
        return None
    (least, first), (most, last) = known[0], known[-1]
    if size <= least:
        return first, size == least
    if size >= most:
        return last * size / most, size == most
    upper = next(i for i, (at, _) in enumerate(known) if at >= size)
    (low, early), (high, late) = known[upper - 1], known[upper]
    return early + (late - early) * (size - low) / (high - low), True


def family(name: str) -> str:
    """In words, what a transport is."""
    if name.startswith("NET"):
        return "network"
    return {"P2P": "GPU to GPU", "SHM": "the host's memory", "NVLS": "NVLink switch"}.get(
        name.partition("/")[0], "network"
    )


def transports_of(said: Iterable[RunCommunication]) -> tuple[Transport, ...]:
    """The transports of several logs together; pairs as the log that tells most of them."""
    found: dict[str, Transport] = {}
    for each in said:
        for way in each.transports:
            held = found.get(way.name)
            found[way.name] = Transport(
                name=way.name,
                channels=way.channels + (held.channels if held else 0),
                pairs=max(way.pairs, held.pairs if held else 0),
            )
    return tuple(sorted(found.values(), key=lambda way: (-way.channels, way.name)))

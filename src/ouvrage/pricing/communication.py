"""What is known of the time that GPUs spent speaking to each other, and by which way they did.

Decides what evidence is worth. Transports are what NCCL says of itself. Time follows from them never;
it is modelled where the log lists the calls *and* nccl-tests measured such calls among as many ranks,
and then it is what the calls would take one after another: what ran under computing is not known, so the
share of the run is an upper one. Without evidence nothing is credited to the interconnect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ouvrage.base.grades import Grade, weakest
from ouvrage.base.numbers import decimal_text
from ouvrage.base.text import safe
from ouvrage.evidence.figures import Figure, known, unknown
from ouvrage.metering.around import communications_of, link_tests_of, topology_of
from ouvrage.metering.nccl_log import family, time_of, transports_of
from ouvrage.metering.run_view import RunView
from ouvrage.metering.topology import gpu_links, topology_words, way
from ouvrage.model.around import (
    Calls,
    RunCommunication,
    RunLinkTest,
    RunTopology,
    Transport,
)
from ouvrage.pricing.words import counted, mark, percent, rounded

NO_EVIDENCE = "no evidence about the interconnect: nothing is credited to it"
NO_CALLS = "the log lists no calls: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL lists them"
NO_TEST = "no measurement of these calls: ouvrage run --nccl-tests FILE"
MODEL = "calls in NCCL's log x what nccl-tests took for their size, one after another"
_KINDS = ("run.communication", "run.link_test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """By which ways ranks spoke, and what their calls would take: ``seconds`` None where ``why`` says.

    ``sure`` is false where a call lay outside of the measured sizes.
    """

    transports: tuple[Transport, ...]
    nvls: bool
    calls: int
    seconds: Fraction | None
    sure: bool
    why: str | None


def spoken(said: Sequence[RunCommunication], tests: Sequence[RunLinkTest]) -> Spoken | None:
    """What NCCL's logs and tests amount to; None where there is no log."""
    if not said:
        return None
    most = max(said, key=lambda each: sum(call.calls for call in each.calls))
    times = [_time(call, tests) for call in most.calls]
    told = [time for time in times if time is not None]
    why = None
    if not most.calls:
        why = NO_CALLS
    elif len(told) < len(times):
        missing = next(call for call, time in zip(most.calls, times, strict=True) if time is None)
        why = f"{missing.name} among {missing.ranks} ranks was called: {NO_TEST}"
    return Spoken(
        transports=transports_of(said),
        nvls=any(each.nvls for each in said),
        calls=sum(call.calls for call in most.calls),
        seconds=None if why else sum((time for time, _ in told), Fraction(0)),
        sure=all(inside for _, inside in told),
        why=why,
    )


def _time(call: Calls, tests: Iterable[RunLinkTest]) -> tuple[Fraction, bool] | None:
    """All calls of one sort by a test among as many ranks; a single rank speaks to nobody."""
    if call.ranks == 1:
        return Fraction(0), True
    for test in tests:
        if test.ranks == call.ranks and (found := time_of(test, call.name, call.size_bytes)):
            return found[0] * call.calls, found[1]
    return None


def spoken_of(view: RunView) -> Spoken | None:
    """The same for one run."""
    return spoken(communications_of(view), link_tests_of(view))


def communication_figures(view: RunView) -> Iterator[Figure]:
    """Seconds that the run's calls would take, and the share of the run that this is at most."""
    found, path = spoken_of(view), "communication.modelled_s"
    share, method = (
        "communication.share_at_most",
        "modelled seconds / wall time, as if none overlapped",
    )
    if found is None or found.seconds is None or not view.wall_us:
        why = NO_EVIDENCE if found is None else found.why or "the run took no time"
        yield unknown(path, "s", MODEL, why)
        yield unknown(share, "1", method, why, inputs=(path,))
        return
    words = MODEL if found.sure else f"{MODEL}; sizes that were not measured in proportion"
    grade = weakest((Grade.ASSUMED, view.grade))
    facts = view.facts(*_KINDS)
    yield known(path, found.seconds, "s", grade, words, facts=facts)
    part = min(Fraction(1), found.seconds * 1_000_000 / view.wall_us)
    yield known(share, part, "1", grade, method, inputs=(path, "wall_s"))


def transport_words(transports: Iterable[Transport], topology: RunTopology | None) -> str:
    """``P2P/CUMEM (NVLink) on 48 channels of 16 pairs, NET/IB (network) on 4 channels of 2 pairs``."""
    return ", ".join(
        f"{safe(each.name)} ({_way_of(each.name, topology)}) on {counted(each.channels, 'channel')}"
        f" of {counted(each.pairs, 'pair')}"
        for each in transports
    )


def _way_of(name: str, topology: RunTopology | None) -> str:
    """What a transport went over; GPU to GPU is a link only where the topology leaves no other."""
    sort = family(name)
    if not name.startswith("P2P") or topology is None:
        return sort
    links = {way(link) for link, _ in gpu_links(topology)}
    if links == {"NV"}:
        return "NVLink"
    return "PCIe" if links and "NV" not in links else sort


def communication_words(
    found: Spoken, topology: RunTopology | None, wall_us: int, plain: bool
) -> str:
    """One line: by which ways, and how long at most."""
    words = transport_words(found.transports, topology) or "no transport named"
    if found.nvls:
        words += "; NVLink switch reductions (NVLS)"
    words += mark(Grade.REPORTED, plain)
    if found.seconds is not None and wall_us:
        part = percent(min(Fraction(1), found.seconds * 1_000_000 / wall_us))
        grade = mark(Grade.ASSUMED, plain)
        return f"{words}; {counted(found.calls, 'call')}, {rounded(found.seconds)} s{grade}: at most {part} of the time"
    return f"{words}; how long is not known: {found.why}"


def disagreement(transports: Iterable[Transport], topology: RunTopology) -> str | None:
    """That NVLink is there and ranks of one machine did not speak over it; None where nothing is odd."""
    ways = dict(gpu_links(topology))
    names = {each.name.partition("/")[0] for each in transports}
    if ways and all(way(link) == "NV" for link in ways) and names and "P2P" not in names:
        return (
            f"all GPUs are joined by NVLink, and NCCL went by {' and '.join(sorted(names))}: "
            "NCCL_P2P_DISABLE, or a container without its peers, may be why"
        )
    return None


def topology_json(topology: RunTopology | None) -> dict[str, Any] | None:
    """What joins the GPUs, as the driver tells it."""
    if topology is None:
        return None
    return {
        "source": topology.source,
        "words": topology_words(topology),
        "gpu_pairs": dict(gpu_links(topology)),
        "nics": list(topology.nics),
        "devices": [row.name for row in topology.rows],
        "links": [list(row.links) for row in topology.rows],
        "cpus": [row.cpus for row in topology.rows],
        "numa": [row.numa for row in topology.rows],
    }


def communication_json(
    found: Spoken | None, said: Sequence[RunCommunication], tests: Sequence[RunLinkTest]
) -> dict[str, Any]:
    """The evidence, and what follows from it; figures stand beside, in the sheet's own group."""
    return {
        "evidence": found is not None,
        "why": NO_EVIDENCE if found is None else found.why,
        "transports": [
            {
                "name": each.name,
                "way": family(each.name),
                "channels": each.channels,
                "pairs": each.pairs,
            }
            for each in (found.transports if found else ())
        ],
        "nvls": found.nvls if found else None,
        "calls": found.calls if found else None,
        "logs": [
            {"source": each.source, "nccl": each.library, "ranks": each.ranks, "nodes": each.nodes}
            for each in said
        ],
        "tests": [
            {
                "source": test.source,
                "gpu": test.gpu,
                "ranks": test.ranks,
                "largest_bus_gb_s": decimal_text(Fraction(test.rows[-1].bus_gb_s)),
            }
            for test in tests
        ],
    }


def run_topology(view: RunView) -> RunTopology | None:
    """What joins the GPUs of a run's machine, where more than one is told."""
    found = topology_of(view)
    several = found is not None and sum(row.name.startswith("GPU") for row in found.rows) > 1
    return found if several else None

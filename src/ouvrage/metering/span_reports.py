"""Reports of spans, joined into one a thread and window before they become facts.

Decides how much of a program's reports is recorded: sums of each span's name, not the reports one by
one. What a span means is decided where time is attributed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ouvrage.model.runs import RunSpans, SpanSum


def merged_spans(spans: Iterable[RunSpans], window_us: int) -> list[RunSpans]:
    """One report per thread and window, since a program may report twice a second for days."""
    groups: dict[tuple[int, int, int], list[RunSpans]] = {}
    for report in spans:
        key = (report.pid, report.tid, report.to_us // window_us)
        groups.setdefault(key, []).append(report)
    return [_merged(index, group) for index, group in enumerate(groups.values())]


def _merged(index: int, group: Sequence[RunSpans]) -> RunSpans:
    sums: dict[str, tuple[int, int]] = {}
    for report in group:
        for span in report.spans:
            count, total = sums.get(span.name, (0, 0))
            sums[span.name] = (count + span.count, total + span.total_us)
    cpu = [report.cpu_us for report in group if report.cpu_us is not None]
    return replace(
        group[0],
        index=index,
        from_us=min(report.from_us for report in group),
        to_us=max(report.to_us for report in group),
        cpu_us=sum(cpu) if len(cpu) == len(group) else None,
        spans=tuple(
            SpanSum(name=name, count=count, total_us=total) for name, (count, total) in sums.items()
        ),
    )

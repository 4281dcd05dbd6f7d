"""A report as of a past moment has the same bytes later, whatever arrived since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ouvrage.base.canonical import canonical
from ouvrage.metering.run_view import run_views
from ouvrage.metering.spool import facts_of
from ouvrage.metering.whole_spool import read_lines, sealed_fact
from ouvrage.pricing.report import report_json
from ouvrage.pricing.unit_cost import sheet_of
from ouvrage.store.archive import backup, restore
from ouvrage.store.store import Store
from tests.support.facts import OTHER, withdrawal
from tests.support.spools import run_id, spool

RUN = run_id(1)


def report(store: Store, as_of: int) -> str:
    records = store.records(subject=RUN, as_of=as_of)
    view = run_views(records)[RUN]
    return canonical(report_json(view, sheet_of(view, as_of)))


def test_reports(store: Store, other_store: Store, tmp_path: Path) -> None:
    data = spool(RUN)
    read = read_lines(data)
    facts = facts_of(read, sealed=sealed_fact(read, data))
    start = facts[0]
    cheaper = replace(
        start, id="z1", payload=start.payload.replace("0.30", "0.20"), corrects=start.key
    )
    steps = [
        facts[:-1],  # the end is late
        facts[-1:],
        facts,  # again
        [replace(start, payload=start.payload.replace("small", "other"))],  # contested
        [cheaper],
        [withdrawal("z2", cheaper.key, subject=RUN)],
    ]
    known: list[tuple[int, str]] = []
    for at, step in enumerate(steps, 1):
        store.append(step, now_us=at * 1000, own_source=OTHER)
        moment = store.moment(at * 1000 + 500, now_us=at * 1000 + 500)
        known.append((moment, report(store, moment)))
        assert [report(store, then) for then, _ in known] == [text for _, text in known]
    texts = [text for _, text in known]
    assert '"outcome":"lost"' in texts[0]
    assert '"outcome":"completed"' in texts[1]
    assert '"amount":"0.20"' in texts[4]
    assert '"amount":"0.30"' in texts[5]
    backup(store, tmp_path, tmp_path / "b.tar.gz")
    restore(tmp_path / "b.tar.gz", other_store, tmp_path / "there")
    assert [report(other_store, then) for then, _ in known] == texts

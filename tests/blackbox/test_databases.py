"""The same questions get the same answers whether the ledger is a file or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.blackbox.home import Home
from tests.blackbox.spools import price, run_id, spool
from tests.support import postgres
from tests.support.stores import cluster

__all__ = ("cluster",)

QUESTIONS = [
    ("report", "fast"),
    ("report", "fast", "--json"),
    ("compare", "slow", "fast"),
    ("compare", "slow", "fast", "--json"),
]


def test_answers_do_not_depend_on_the_database(
    homes: Callable[[str], Home], cluster: postgres.Cluster
):
    file = homes("file")
    other = homes("other")
    address = cluster.database()
    database = replace(other, environment={**other.environment, "OUVRAGE_STORE": address})
    for number, (label, seconds) in enumerate((("slow", 2.0), ("fast", 1.5)), 1):
        rate = price("0.30" if label == "slow" else "0.36")
        for home in (file, database):
            home.holds(spool(run_id(number), [seconds] * 8, label=label, rate=rate), run_id(number))
    assert file.inside("runs").code == 0
    known = database.inside("compare", "slow", "fast", "--json").json["comparison"]["as_of"]
    for question in QUESTIONS:
        answers = [home.inside(*question, "--as-of", known) for home in (file, database)]
        assert answers[0].code == 0, answers[0]
        assert answers[0] == answers[1]
    assert database.inside("verify").code == 0
    assert "ouvrage.db" not in database.files()

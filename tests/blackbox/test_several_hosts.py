"""From an empty home to what an epoch of a job cost on all its hosts, each host and each epoch once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from ouvrage.base.ids import uuid7
from tests.blackbox.home import COMMAND, Home
from tests.meter.test_surroundings import LAUNCHERS
from tests.metering.test_nccl_log import LOG
from tests.metering.test_topology import FOUR
from tests.support.around import BOX_A, BOX_B, HOUR, NAMES, job
from tests.support.launcher import LAUNCHER, TRAIN
from tests.support.runs import STARTED, busy, end, ends, header, written

pytestmark = pytest.mark.slow


@pytest.fixture
def here(ouvrage: Home) -> Home:
    kept = {k: v for k, v in ouvrage.environment.items() if k not in LAUNCHERS}
    return Home(ouvrage.path, kept)


def elsewhere(homes: Callable[[str], Home], number: int, box: str, **changes) -> tuple[Home, str]:
    """A run of the job ``four`` that was metered on another machine, in that machine's home."""
    home, run = homes(NAMES[box] + str(number)), uuid7(STARTED + number * 1000, number << 60)
    place = {"via": "TORCHELASTIC_RUN_ID", "nodes": 2, "ranks": 4} | changes.pop("place", {})
    lines = [
        header(run=run, source=uuid7(STARTED, number), price=changes.pop("price", HOUR),
               command=["python", "train.py"], started_us=changes.pop("started_us", STARTED)),
        job(box, "four", **place),
        *busy(10),
        ends(2.0, 3.0, 4.0, 5.0),
        *changes.pop("more", ()),
    ]  # fmt: skip
    home.holds("".join(written(*lines, end(10))), run)
    return home, run


def brought(there: Home, here: Home, run: str, tmp_path: Path) -> None:
    """Carried over in a file, as from a machine that is then deleted."""
    file = str(tmp_path / f"{run}.ouvrage")
    assert there.inside("run", "export", run, file).code == 0
    assert here.inside("run", "import", file).code == 0


def test_from_an_empty_home_to_an_epoch_on_all_hosts(
    here: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    (tmp_path / "train.py").write_text(TRAIN)
    train = [sys.executable, str(tmp_path / "train.py")]
    metered = [*COMMAND, "run", "--quiet", "--price", "3.60/h", "--", *train]
    words = [sys.executable, str(tmp_path / "launcher.py"), "four", "0", "2", "2", *metered]
    done = subprocess.run(
        words, env=dict(here.environment), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )  # fmt: skip
    assert done.stdout.count("Epoch 4/4") == 2

    half = here("report", "--job", "four", "--json").json
    assert (half["units"], half["nodes_missing"], half["missing"]) == (4, 1, [1])
    assert half["cost"]["total"] is None
    assert half["coverage"] <= 0.5
    assert here("report", "--job", "four").first.startswith("4 epochs on 1 host: at least 0.00")

    for number, rank in ((8, 2), (9, 3)):
        place = {"node": 1, "rank": rank, "local_rank": rank - 2}
        there, run = elsewhere(homes, number, BOX_B, place=place)
        brought(there, here, run, tmp_path)

    said = here("report", "--job", "four", "--json").json
    assert [(host["nodes"], len(host["runs"])) for host in said["hosts"]] == [([0], 2), ([1], 2)]
    assert (said["unit"], said["units"], said["nodes_missing"]) == ("epoch", 4, 0)
    ours, theirs = said["hosts"]
    assert theirs["cost"] == "0.01"
    # both ranks state the price, and the host is paid once: 3.60/h is 0.001 a second
    assert Decimal(ours["cost"]) == Decimal(str(ours["wall_s"])) / 1000
    assert ours["wall_s"] < 1.5 * max(run["wall_s"] for run in ours["runs"])
    assert Decimal(said["cost"]["total"]) == Decimal(ours["cost"]) + Decimal("0.01")
    assert "nothing is credited" in said["communication"]["why"]
    assert said["clocks"]["by"].startswith("each machine's own UTC clock")

    text = here("report", "--job", "four", "--plain")
    assert re.match(
        r"0\.00\d+ EUR \(assumed\) per epoch with all machines: 4 epochs on 2 hosts", text.first
    )
    assert "4 runs marked the same epochs; each counts once" in text.out
    assert text.out.splitlines()[-1].endswith("Why: ouvrage explain job/four:cost.total")
    explained = here.inside("explain", "job/four:cost.total")
    assert "price of box-b x that time, once for all its runs" in explained.out
    assert here.inside("explain", "job/four", "--json").json["object"] == "job/four"
    page = tmp_path / "job.html"
    assert here.inside("report", "--job", "four", "--html", str(page)).code == 0
    assert "box-b (node 1)" in page.read_text()
    assert here.inside("verify").code == 0


def test_two_currencies_meet_at_a_recorded_rate(
    here: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    dollars = {**HOUR, "amount": "7.20", "currency": "USD"}
    for number, box, price in ((1, BOX_A, HOUR), (2, BOX_B, dollars)):
        place = {"node": number - 1, "rank": number - 1}
        there, run = elsewhere(homes, number, box, price=price, place=place)
        brought(there, here, run, tmp_path)
    apart = here.inside("report", "--job", "four", "--json").json
    assert (apart["cost"]["total"], apart["cost"]["by_currency"]) == (
        None,
        {"EUR": "0.01", "USD": "0.02"},
    )
    rate = ("fx", "set", "EUR/USD", "1.25", "--day", "2025-11-28", "--by", "a bank")
    assert here.inside(*rate).code == 0
    said = here.inside("report", "--job", "four", "--json").json
    assert (said["currency"], said["cost"]["total"]) == ("EUR", "0.026")
    assert here.inside("verify").code == 0


def test_evidence_of_the_interconnect_names_the_way(
    here: Home, homes: Callable[[str], Home], tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "topo.txt").write_text(FOUR)
    words = ("run", "--quiet", "--job", "one", "--topology", str(tmp_path / "topo.txt"))
    assert here(*words, "--", "cat", str(tmp_path / "log")).out == LOG
    said = here.inside("report", "last", "--json").json
    assert said["communication"]["transports"][0] == {
        "name": "P2P/CUMEM", "way": "GPU to GPU", "channels": 2, "pairs": 1,
    }  # fmt: skip
    assert said["communication"]["modelled_s"] is None
    assert said["topology"]["gpu_pairs"] == {"NV12": 2, "SYS": 4}
    text = here.inside("report", "last", "--plain").out
    assert "2 pairs by NV12 (NVLink)" in text
    assert "NET/IB/GDRDMA (network) on 1 channel of 1 pair" in text


def test_a_quote_names_what_joins_the_gpus_and_credits_nothing_for_it(here: Home, tmp_path: Path):
    (tmp_path / "topo.txt").write_text(FOUR)
    (tmp_path / "work.toml").write_text(
        'unit = "epoch"\nunits = 10\nseconds_per_unit = 100\ngpu = "H100"\ngpus = 1\nexchange_gb = 10\n'
    )
    offers = tmp_path / "offers.csv"
    offers.write_text(
        "provider,name,gpu,gpus,vcpus,memory_gib,price_per_hour,currency\n"
        "a,one,H100,1,16,64,2.00,EUR\na,four,H100,4,64,256,8.00,EUR\n"
    )
    words = ("quote", "--profile", "work.toml", "--offers", "offers.csv")
    plain = here.inside(*words, "--json")
    said = here.inside(*words, "--topology", str(tmp_path / "topo.txt"))
    assert "joined by, as topo.txt says: 4 GPUs: 2 pairs by NV12" in said.out
    assert "no gain without nccl-tests" in said.out
    with_table = here.inside(*words, "--topology", str(tmp_path / "topo.txt"), "--json").json
    assert with_table["ranked"] == plain.json["ranked"]
    refused = here.inside(*words, "--topology", "offers.csv")
    assert (refused.code, "error[topology/unreadable]" in refused.err) == (2, True)


def test_what_is_no_job_is_refused(here: Home) -> None:
    unknown = here.inside("report", "--job", "nope")
    assert (unknown.code, "error[job/unknown]" in unknown.err, "hint: " in unknown.err) == (
        2,
        True,
        True,
    )
    both = here.inside("report", "--job", "a", "--campaign", "b")
    assert (both.code, "error[report/which]" in both.err) == (2, True)
    as_json = here.inside("report", "--job", "nope", "--json")
    assert json.loads(as_json.out)["error"]["code"] == "job/unknown"

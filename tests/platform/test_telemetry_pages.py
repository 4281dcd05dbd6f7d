"""The last hour of a machine on its page, and of a job's own GPUs on the job's: as lines, as a table, to those who may see them."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from ouvrage.base.time import HOUR, MINUTE, SECOND
from ouvrage.console.lines import SPELLS, Line, drawn, spells
from ouvrage.server.recent import Recent
from ouvrage.store.sample_frames import Frame
from ouvrage.wire.samples import GPU, Batch, encode
from tests.platform.browsing import Browser
from tests.platform.working import Working

MINE, OTHER = "GPU-box-1-0", "GPU-box-1-1"


def test_a_spell_without_a_reading_is_a_gap() -> None:
    times = [0, 10, 60, 70, 599]
    got = spells(times, [10, 20, None, 30, 7], 0, 600)
    assert (got[:3], got[6], got[7], got[59]) == ((10.0, 20.0, None), None, 30.0, 7.0)
    assert len(got) == SPELLS
    assert spells([600, -1], [1, 1], 0, 600) == (None,) * SPELLS


def test_a_gap_is_not_drawn_over_and_every_line_has_its_name() -> None:
    first = Line(name="one", values=(50.0, 60.0, None, 70.0, *[None] * (SPELLS - 4)))
    second = Line(name="<two>", values=(10.0,) * SPELLS)
    made = ElementTree.fromstring(drawn("x", "Busy", [first, second], 100, [(0, "09:00")]))
    data = [each.get("d", "") for each in made.iter() if each.get("class") == "telling"]
    assert [(each.count("M"), each.count("L")) for each in data] == [(2, 1), (1, SPELLS - 1)]
    words = ["".join(each.itertext()) for each in made.iter() if each.tag.endswith("text")]
    assert {"one", "<two>", "09:00", "100"} <= set(words)
    desc = next(each.text for each in made if each.tag.endswith("desc"))
    assert desc == "one: 50 to 70, mean 60; <two>: 10 to 10, mean 10"


def heard(work: Working, node: str, busy: dict[str, int], minutes: int = 30) -> None:
    """A node said a figure a minute, for so many minutes until now."""
    recent: Recent = work.server.app.state.intake.recent
    now = work.clock()
    times = tuple(now - (minutes - n) * MINUTE for n in range(minutes))
    devices = tuple(sorted(busy))
    gpu: dict[str, Any] = {name: [40] * len(times) * len(devices) for name in GPU}
    gpu["busy_percent"] = [busy[device] for device in devices for _ in times]
    gpu["power_mw"] = [250_000] * len(times) * len(devices)
    batch = Batch(
        source="5" * 32, sequence=1, times=times, devices=devices, gpu=gpu,
        node={"cpu_permille": [375] * len(times), "memory_mib": [100] * len(times)},
    )  # fmt: skip
    recent.add(Frame(node=node, at_us=now, content=encode(batch)))


@pytest.fixture
def shown(working: Working) -> Any:
    """What somebody is shown at an address, as its twin and as a page."""

    def look(login: str, password: str, path: str) -> tuple[Any, str]:
        visiting = Browser.at(working.server.url)
        with visiting.http:
            browser = visiting.signed_in(login, password)
            return browser.get(f"{path}.json").json(), browser.get(path).text

    return look


def numbers(page: Any) -> dict[str, list[str]]:
    table = next((b for b in page["blocks"] if b.get("heading") == "The same in numbers"), None)
    rows = [] if table is None else table["rows"]
    return {row[0]["text"]: [cell["text"].replace("\xa0", " ") for cell in row[1:]] for row in rows}


def test_a_machine_s_last_hour(working: Working, shown: Any) -> None:
    twin = working.node("box-1", cpus=4)
    page, _ = shown("admin", working.server.password, "/nodes/box-1")
    assert numbers(page) == {}
    heard(working, twin.node, {MINE: 80, OTHER: 5})
    page, html = shown("admin", working.server.password, "/nodes/box-1")
    found = numbers(page)
    assert found["GPU ox-1-0: GPU busy"] == ["80 %", "80 %", "80 %", "80 %", "50 %"]
    assert found["GPU ox-1-1: GPU busy"][0] == "5 %"
    assert found["GPU ox-1-0: GPU power"][0] == "250 W"
    assert found["All cores: Cores busy"][0] == "38 %"
    assert html.count('class="telling"') == 7
    pictures = [each["heading"] for each in page["blocks"] if each["kind"] == "picture"]
    assert pictures == ["GPU busy, %", "GPU power, W", "GPU temperature, °C", "Cores busy, %"]
    assert re.search(r"<svg[^>]*role=\"img\"", html)


def test_a_job_shows_its_own_gpus_while_it_has_them(working: Working, shown: Any) -> None:
    twin = working.node("box-1", cpus=4, gpus=2)
    working.offer("card", gpus=1)
    asked = {"name": "acme", "admin": "ann", "billing": "credit", "credit_limit": "100"}
    made = working.owner.post("/v1/organisations", asked)
    ann = working.server.signed_in(made["login"], made["password"])
    job = working.submit(ann, "card")["job"]
    working.engine.observe()
    twin.ask()
    (start,) = twin.starts
    (own,) = start.devices
    twin.report([twin.began(start.attempt)])
    working.clock.move(20 * MINUTE)
    twin.ask()
    heard(working, twin.node, {MINE: 90, OTHER: 90} | {own: 33})
    page, html = shown(made["login"], made["password"], f"/jobs/{job}")
    found = numbers(page)
    assert found["GPU: GPU busy"][:4] == ["33 %"] * 4
    assert set(found) == {"GPU: GPU busy", "GPU: GPU power", "GPU: GPU temperature"}
    assert "90" not in str(found)
    assert html.count('class="telling"') == 3
    twin.report([twin.ended(start.attempt)])
    working.clock.move(2 * HOUR + SECOND)
    page, _ = shown(made["login"], made["password"], f"/jobs/{job}")
    assert numbers(page) == {}

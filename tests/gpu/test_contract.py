"""One contract for the real binding, on the stand-in library, and its in-memory twin.

The binding can be loaded once in a process and keeps what it loaded, so it is asked in a child.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest

from ouvrage.adapters import nvml_place
from ouvrage.adapters.gpu_port import ABOUT, NAMES, OFTEN, Lost, Rare, Unavailable, believable
from ouvrage.adapters.nvml_twin import NvmlTwin
from tests.support.meter import SOURCES
from tests.support.nvml import Cards

ASK = """
import json, sys
from ouvrage.adapters.gpu_port import Lost, Unavailable
from ouvrage.adapters.nvml import Nvml
library, answers = Nvml(), []
for verb, *arguments in json.loads(sys.argv[1]):
    try:
        answers.append([None, getattr(library, verb)(*arguments)])
    except (Lost, Unavailable) as error:
        answers.append([type(error).__name__ + ":" + getattr(error, "kind", ""), None])
print(json.dumps(answers))
"""
SENTINEL = 9223372036854775794


class Subject(Protocol):
    def set(self, gpu: int, name: str, value: int) -> None: ...
    def ask(self, *questions: tuple[Any, ...]) -> list[Any]: ...


class Real:
    """The binding on the stand-in; fields go by the stand-in's names."""

    STUB: ClassVar = {
        "busy_percent": "util_gpu", "memory_used_bytes": "memory_used",
        "power_average_mw": "power_mw", "clock_reasons": "clock_reasons", "mig": "mig",
        "energy_mj": "energy_mj", "temperature_c": "temperature_c", "lost": "lost",
        "pcie_tx_kb_s": "pcie_tx_kb_s", "memory_bytes": "memory_total",
        "ecc_uncorrected": "ecc_uncorrected_volatile", "clock_sm_mhz": "clock_sm_mhz",
    }  # fmt: skip

    def __init__(self, cards: Cards, gpus: int) -> None:
        self._cards = cards
        cards.set(count=gpus)

    def set(self, gpu: int, name: str, value: int) -> None:
        self._cards.set(**{f"gpu{gpu}__{self.STUB[name]}": value})

    def ask(self, *questions: tuple[Any, ...]) -> list[Any]:
        done = subprocess.run(
            [sys.executable, "-c", ASK, json.dumps(questions)],
            env={"PYTHONPATH": str(SOURCES), **self._cards.environment},
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
        return json.loads(done.stdout)


class Twin:
    def __init__(self, gpus: int) -> None:
        self._twin = NvmlTwin(gpus)

    def set(self, gpu: int, name: str, value: int) -> None:
        if name == "lost":
            self._twin.lost.add(gpu)
        elif name in NAMES:
            self._twin.values[gpu][name] = value
        else:
            self._twin.about[gpu][name] = value

    def ask(self, *questions: tuple[Any, ...]) -> list[Any]:
        answers: list[Any] = []
        for verb, *arguments in questions:
            try:
                answers.append([None, getattr(self._twin, verb)(*arguments)])
            except (Lost, Unavailable) as error:
                answers.append([f"{type(error).__name__}:{getattr(error, 'kind', '')}", None])
        return answers


@pytest.fixture(params=["binding", "twin"])
def subject(request: pytest.FixtureRequest) -> Callable[[int], Subject]:
    if request.param == "twin":
        return Twin
    cards: Cards = request.getfixturevalue("cards")
    return lambda gpus: Real(cards, gpus)


def reading(subject: Subject, gpu: int = 0, tick: int = 0) -> dict[str, int | None]:
    (_, (fault, values)) = subject.ask(("open",), ("read", gpu, tick))
    assert fault is None
    return dict(zip(NAMES, values, strict=True))


def test_how_many_and_who(subject: Callable[[int], Subject]) -> None:
    made = subject(3)
    count, about = made.ask(("open",), ("describe", 2))
    assert count == [None, 3]
    assert set(about[1]) == set(ABOUT.split())
    assert about[1]["uuid"] == "GPU-00000000-0000-4000-8000-000000000002"
    assert about[1]["serial"] == "9000000002"
    assert about[1]["pci"].lower() == "00000000:12:00.0"
    assert (about[1]["power_limit_mw"], about[1]["mig"], about[1]["ecc"]) == (700_000, 0, 1)
    assert (about[1]["clock_sm_max_mhz"], about[1]["memory_bytes"]) == (1980, 85_520_809_984)


def test_what_it_says_now(subject: Callable[[int], Subject]) -> None:
    made = subject(1)
    for name, value in (
        ("busy_percent", 97), ("memory_used_bytes", 61 << 30), ("power_average_mw", 651_000),
        ("energy_mj", 123_456_789_012), ("temperature_c", 71), ("clock_reasons", 0x44),
        ("clock_sm_mhz", 1400), ("pcie_tx_kb_s", 5000), ("ecc_uncorrected", 2),
    ):  # fmt: skip
        made.set(0, name, value)
    told = reading(made)
    assert told["busy_percent"] == 97
    assert told["memory_used_bytes"] == 61 << 30
    assert told["power_average_mw"] == 651_000
    assert told["energy_mj"] == 123_456_789_012
    assert (told["temperature_c"], told["clock_reasons"], told["clock_sm_mhz"]) == (71, 0x44, 1400)
    assert (told["pcie_tx_kb_s"], told["pcie_generation"], told["pcie_width"]) == (5000, 5, 16)
    assert (told["ecc_uncorrected"], told["power_limit_mw"]) == (2, 700_000)


def test_blanks_and_nonsense_are_not_known(subject: Callable[[int], Subject]) -> None:
    made = subject(1)
    for name, value in (
        ("energy_mj", SENTINEL), ("power_average_mw", 0xFFFFFFFF), ("busy_percent", 4711),
        ("temperature_c", 0xFFFFFFFF), ("clock_sm_mhz", 0x7FFFFFF2),
    ):  # fmt: skip
        made.set(0, name, value)
    told = reading(made)
    for name in ("energy_mj", "power_average_mw", "busy_percent", "temperature_c", "clock_sm_mhz"):
        assert told[name] is None, name


def test_a_divided_card_tells_no_load_but_its_power(subject: Callable[[int], Subject]) -> None:
    made = subject(1)
    made.set(0, "mig", 1)
    made.set(0, "busy_percent", 50)
    told = reading(made)
    assert told["busy_percent"] is None
    assert told["power_average_mw"] == 71_000
    assert made.ask(("open",), ("describe", 0))[1][1]["mig"] == 1


def test_traffic_is_asked_of_one_card_at_a_tick(subject: Callable[[int], Subject]) -> None:
    made = subject(2)
    asked = made.ask(("open",), *(("read", gpu, tick) for tick in (4, 5) for gpu in (0, 1)))
    place = NAMES.index("pcie_tx_kb_s")
    assert [values[place] is not None for _, values in asked[1:]] == [True, False, False, True]


def test_a_lost_card_says_so_and_leaves_the_others(subject: Callable[[int], Subject]) -> None:
    made = subject(2)
    made.set(1, "lost", 1)
    answers = made.ask(("open",), ("describe", 1), ("read", 1, 0), ("read", 0, 0))
    assert [fault for fault, _ in answers] == [None, "Lost:", "Lost:", None]


def test_a_field_that_errs_leaves_the_others(cards: Cards) -> None:
    made = Real(cards, 1)
    cards.set(gpu0__temperature_c=-1, **{"gpu0__rc.util_gpu": 999, "gpu0__rc.power_mw": 3})
    told = reading(made)
    assert (told["temperature_c"], told["busy_percent"]) == (None, None)
    assert (told["power_average_mw"], told["energy_mj"], told["clock_sm_mhz"]) == (None, 0, 1980)


@pytest.mark.parametrize(("init", "kind"), [(9, "driver"), (18, "driver"), (4, "driver")])
def test_a_driver_that_refuses(cards: Cards, init: int, kind: str) -> None:
    cards.set(init=init)
    assert Real(cards, 1).ask(("open",)) == [[f"Unavailable:{kind}", None]]


def test_no_library_is_no_driver() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ASK, '[["open"]]'],
        env={"PYTHONPATH": str(SOURCES), "LD_LIBRARY_PATH": "/nowhere"},
        capture_output=True, text=True, check=True, timeout=30,
    )  # fmt: skip
    if nvml_place.is_here({}):
        pytest.skip("this machine has the library")
    assert json.loads(done.stdout) == [["Unavailable:library", None]]


def test_where_the_library_is_looked_for(library: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "no-cache")
    assert nvml_place.is_here({"LD_LIBRARY_PATH": f"/nowhere:{library}"}, nowhere)
    assert nvml_place.is_here({"LD_PRELOAD": str(library / "libnvidia-ml.so.1")}, nowhere)
    cache = tmp_path / "ld.so.cache"
    cache.write_bytes(b"\0libnvidia-ml.so.1\0/usr/lib/libnvidia-ml.so.1\0")
    assert nvml_place.is_here({}, str(cache))


def test_what_can_be_believed() -> None:
    assert believable("busy_percent", 100) == 100
    assert believable("busy_percent", 101) is None
    assert believable("energy_mj", 1 << 50) == 1 << 50
    assert believable("energy_mj", -1) is None
    assert believable("power_limit_mw", None) is None


SNAPSHOT = """
import json, nvitop
print(json.dumps([[d.name(), str(d.gpu_utilization()), d.power_usage()] for d in nvitop.Device.all()]))
"""


def test_nvitop_reads_the_stand_in_too(cards: Cards) -> None:
    pytest.importorskip("nvitop")
    cards.set(count=2, gpu1__util_gpu=97, gpu1__power_mw=651_000)
    done = subprocess.run(
        [sys.executable, "-c", SNAPSHOT], env=cards.environment,
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert json.loads(done.stdout)[1] == ["Ouvrage Stub GPU", "97", 651_000]


def test_errors_of_a_card_are_told_once() -> None:
    twin = NvmlTwin(2)
    twin.xids = [(1, 79), (None, 154)]
    assert twin.errors() == [(1, 79), (None, 154)]
    assert twin.errors() == []


def test_where_nothing_went_wrong_there_are_no_errors(subject: Callable[[int], Subject]) -> None:
    made = subject(1)
    assert made.ask(("open",), ("read", 0, 0), ("errors",))[-1] == [None, []]


def test_what_changes_rarely_is_said_again_only_when_it_changed() -> None:
    said, heard = Rare(), Rare()
    first, second = list(range(len(NAMES))), [7 * n for n in range(len(NAMES))]
    assert heard.completed(0, first[:OFTEN]) is None, "nothing whole came before it"
    told = [said.shortened(0, list(values)) for values in (first, first, second, first)]
    assert [len(values) for values in told] == [len(NAMES), OFTEN, len(NAMES), len(NAMES)]
    assert [heard.completed(0, values) for values in told] == [first, first, second, first]
    said.forget(0)
    assert len(said.shortened(0, list(first))) == len(NAMES)
    assert heard.completed(0, first[:3]) is None
    heard.forget(0)
    assert heard.completed(0, first[:OFTEN]) is None

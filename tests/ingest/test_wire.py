"""Batches of samples: what is sent is what is read, and nothing else is read at all."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.base.errors import OuvrageError
from ouvrage.wire.samples import GPU, MOST_TIMES, NODE, UNPACKED, Batch, decode, encode

SOURCE = "0" * 31 + "1"


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    steps = draw(st.lists(st.integers(1, 10**7), min_size=1, max_size=5))
    start = draw(st.integers(0, 2**52))
    times = tuple(start + sum(steps[:n]) for n in range(len(steps)))
    devices = tuple(f"GPU-{n}" for n in range(draw(st.integers(0, 3))))

    def columns(known: dict[str, int], rows: int) -> dict[str, list[int | None]]:
        names = draw(st.lists(st.sampled_from(sorted(known)), unique=True))
        return {
            name: draw(
                st.lists(st.none() | st.integers(0, known[name]), min_size=rows, max_size=rows)
            )
            for name in names
        }

    return Batch(
        source=SOURCE, sequence=draw(st.integers(1, 2**52)), times=times, devices=devices,
        gpu=columns(GPU, len(times) * len(devices)), node=columns(NODE, len(times)),
    )  # fmt: skip


@pytest.mark.property
@given(batches())
def test_what_is_sent_is_what_is_read(batch: Batch) -> None:
    assert decode(encode(batch)) == batch
    assert encode(decode(encode(batch))) == encode(batch)


@pytest.mark.property
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_as_what_they_are(data: bytes) -> None:
    for sent in (data, gzip.compress(data)):
        with pytest.raises(OuvrageError) as refused:
            decode(sent)
        assert refused.value.code == "samples/unreadable"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["gpu", "busy_percent", "gpu.busy_percent"]), inner)
    ),
    max_leaves=6,
)
GOOD: dict[str, Any] = {
    "v": 1, "source": SOURCE, "sequence": 1, "times": [10, 1], "devices": ["GPU-1"],
    "gpu": {"busy_percent": [5, -1]}, "node": {}, "missing": {},
}  # fmt: skip


def sent(said: Any) -> bytes:
    return gzip.compress(json.dumps(said).encode())


@pytest.mark.property
@given(st.sampled_from(sorted(GOOD)), JSON)
def test_a_field_of_any_other_form_is_refused_or_read_whole(name: str, value: Any) -> None:
    with suppress(OuvrageError):
        batch = decode(sent({**GOOD, name: value}))
        assert decode(encode(batch)) == batch


HOSTILE = {
    "a bomb": gzip.compress(bytes(UNPACKED * 20)),
    "too long": bytes(1 << 20),
    "half": encode(decode(sent(GOOD)))[:-9],
    "two": sent(GOOD) + sent(GOOD),
    "deep": gzip.compress(b"[" * 200_000),
    "a huge number": gzip.compress(b'{"v":1,"times":[' + b"9" * 100_000 + b"]}"),
    "true is no number": sent({**GOOD, "times": [True]}),
    "no moment": sent({**GOOD, "times": []}),
    "time stands still": sent({**GOOD, "times": [10, 0]}),
    "time runs back": sent({**GOOD, "times": [10, -1]}),
    "before time": sent({**GOOD, "times": [-5, 9]}),
    "too many moments": sent({**GOOD, "times": [1] * (MOST_TIMES + 1), "gpu": {}}),
    "a device twice": sent({**GOOD, "devices": ["a", "a"], "gpu": {}}),
    "a device with a path": sent({**GOOD, "devices": ["../../x"], "gpu": {}}),
    "a short column": sent({**GOOD, "gpu": {"busy_percent": [1]}}),
    "an unknown column": sent({**GOOD, "gpu": {"price": [1, 1]}}),
    "busier than possible": sent({**GOOD, "gpu": {"busy_percent": [101, 0]}}),
    "less than nothing": sent({**GOOD, "gpu": {"busy_percent": [1, -2]}}),
    "missing where there is nothing": sent({**GOOD, "missing": {"gpu.busy_percent": [2]}}),
    "missing of no column": sent({**GOOD, "missing": {"gpu.power_mw": [0]}}),
    "another version": sent({**GOOD, "v": 2}),
    "one field more": sent({**GOOD, "more": 1}),
    "number 0": sent({**GOOD, "sequence": 0}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_batches_are_refused(what: str) -> None:
    with pytest.raises(OuvrageError) as refused:
        decode(HOSTILE[what])
    assert refused.value.code == "samples/unreadable"
    assert len(refused.value.message) < 300


def test_a_usual_batch_takes_few_bytes_a_sample() -> None:
    devices = tuple(f"GPU-{n:032x}" for n in range(8))
    times = tuple(1_790_000_000_000_000 + n * 1_000_000 for n in range(10))
    rows = range(len(devices) * len(times))
    gpu = {
        "busy_percent": [90 + row * 7919 % 10 for row in rows],
        "memory_mib": [70_000 + row // 10 for row in rows],
        "power_mw": [600_000 + row * 104_729 % 50_000 for row in rows],
        "energy_mj": [10**12 + row // 10 * 10**9 + row % 10 * 620_000 + row * 7 for row in rows],
        "temperature_c": [60 + row // 10 for row in rows],
    }
    node = {"cpu_permille": [300 + n * 31 % 9 for n in range(10)], "memory_mib": [400_000] * 10}
    batch = Batch(source=SOURCE, sequence=1, times=times, devices=devices, gpu=gpu, node=node)
    assert len(encode(batch)) / batch.samples < 15

"""The job file: every field read or refused with its place, and nothing that a stranger sends breaks the reader."""

from __future__ import annotations

import re
import string
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ouvrage.adapters.yaml_text import load_yaml
from ouvrage.base.grades import Grade
from ouvrage.ledger.admission import payload_fault
from ouvrage.ledger.kinds import fact_of, read
from ouvrage.model.selling import OwnOffer
from ouvrage.model.work import Carried, JobSpec, JobSubmitted, Named
from ouvrage.placement.snapshot import Needs
from ouvrage.placement.spec import (
    ALONE,
    FIELDS,
    FieldError,
    check_within,
    from_flags,
    job_spec,
    merged,
    name_from,
    needs_of,
    needs_of_offer,
)
from tests.placement.worlds import node, placed

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "job-file.md"
WHOLE = """\
name: train-resnet
command: [python, train.py, --epochs, 90]
gpus: 2 GPUs
gpu: RTX 4090
cpus: "8"
memory: 32GiB
disk: 100GB
environment: {SEED: 7, RATE: 0.0000001, FLAG: true, EMPTY: "", ID: 007}
secrets: {API_KEY: my-key}
inputs: {data/train.csv: train.csv}
outputs: [model.pt, out/log.txt=log.txt]
volumes: {/data: imagenet}
workdir: /scratch/run
checkpoint: checkpoints
unit: epoch
unit_regex: ^epoch (\\d+)
egress: [example.org:443, 192.0.2.0/24]
port: 8000
retries: 2
time_limit: 1h 30min
grace: 60 s
priority: -3
budget: 5.00
deadline: 2026-12-01T08:00:00Z
interruptible: true
after: [prepare]
stop_idle: 30 min
"""


def _refused(data: Any, **more: Any) -> FieldError:
    with pytest.raises(FieldError) as caught:
        job_spec(data, **more)
    return caught.value


def test_a_whole_file_becomes_a_job():
    spec = job_spec(*load_yaml("job.yaml", WHOLE, "job"))
    assert spec.command == ("python", "train.py", "--epochs", "90")
    assert (spec.gpus, spec.gpu, spec.cpus) == (2, "RTX 4090", 8)
    assert (spec.memory_mib, spec.disk_mib) == (32 * 1024, 95368)
    assert [(v.name, v.value) for v in spec.environment] == [
        ("SEED", "7"),
        ("RATE", "0.0000001"),
        ("FLAG", "true"),
        ("EMPTY", ""),
        ("ID", "007"),
    ]
    assert spec.secrets == (Named(name="API_KEY", value="my-key"),)
    assert spec.outputs == (
        Carried(path="model.pt", name="model.pt"),
        Carried(path="out/log.txt", name="log.txt"),
    )
    assert (spec.time_limit_us, spec.grace_us) == (5_400_000_000, 60_000_000)
    assert (spec.network, spec.budget, spec.deadline_us) == (
        "egress",
        "5.00",
        1_796_112_000_000_000,
    )
    assert spec.stop_idle_us == 1_800_000_000


def test_what_is_left_out_is_the_offer_s():
    assert job_spec({"command": "date"}) == job_spec(
        {"command": ["/bin/sh", "-c", "date"], "name": "date"}
    )
    offered = Needs(gpus=1, gpu="H100", cpus=8, memory_mib=9, disk_mib=7)
    spec = job_spec({"command": ["a"]}, defaults=offered)
    assert needs_of(spec) == offered
    assert needs_of(job_spec({"command": ["a"]})) == ALONE
    assert job_spec({"command": ["a"], "gpus": 0}, defaults=offered).gpu is None
    assert job_spec({"command": ["a"], "image": "python:3.11"}).isolation == "podman"


def test_flags_say_the_same_as_a_file():
    flags = {
        "command": ("python", "train.py", "--epochs", "90"), "name": "train-resnet", "gpus": "2", "gpu": "RTX 4090",
        "cpus": "8", "memory": "32GiB", "disk": "100GB", "secrets": ["API_KEY=my-key"],
        "environment": ["SEED=7", "RATE=0.0000001", "FLAG=true", "EMPTY=", "ID=007"],
        "inputs": ["data/train.csv=train.csv"], "outputs": ["model.pt", "out/log.txt=log.txt"],
        "volumes": ["/data=imagenet"], "workdir": "/scratch/run", "checkpoint": "checkpoints", "unit": "epoch",
        "unit_regex": r"^epoch (\d+)", "egress": ["example.org:443", "192.0.2.0/24"], "port": "8000", "retries": "2",
        "time_limit": "1h 30min", "grace": "60 s", "priority": "-3", "budget": "5.00", "image": None,
        "deadline": "2026-12-01T08:00:00Z", "interruptible": "true", "after": ["prepare"], "stop_idle": "30 min",
    }  # fmt: skip
    assert job_spec(from_flags(flags)) == job_spec(*load_yaml("job.yaml", WHOLE, "job"))


def test_flags_go_over_a_file_and_add_to_its_lists():
    file = {
        "command": ["a"],
        "cpus": 1,
        "environment": {"A": "1", "B": "2"},
        "after": ["x"],
        "outputs": ["m"],
    }
    over = merged(
        file, {"cpus": "4", "environment": ["B=3", "C=4=5"], "after": ["y"], "outputs": ["n"]}
    )
    spec = job_spec(over)
    assert spec.cpus == 4
    assert [(v.name, v.value) for v in spec.environment] == [("A", "1"), ("B", "3"), ("C", "4=5")]
    assert (spec.after, [o.name for o in spec.outputs]) == (("x", "y"), ["m", "n"])


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("memory", 8, "a size with its unit"),
        ("memory", "8G", "a size with its unit"),
        ("memory", "99999999999TiB", "at most"),
        ("time_limit", "90", "a duration with its unit"),
        ("time_limit", "0 s", "more than nothing"),
        ("time_limit", "1 month", "a duration with its unit"),
        ("time_limit", "99 years", "a duration with its unit"),
        ("gpus", "1.5", "a whole number of GPUs"),
        ("gpus", True, "a whole number of GPUs"),
        ("cpus", 0, "a whole number from 1 to 4096"),
        ("port", 65536, "from 1 to 65535"),
        ("retries", -1, "from 0 to 100"),
        ("budget", "0.00", "an amount above nothing"),
        ("budget", "5 EUR", "an amount above nothing"),
        ("budget", Decimal("NaN"), "a plain decimal"),
        ("budget", Decimal("1E+999999"), "a plain decimal"),
        ("deadline", "2026-12-01T08:00:00", "with its zone"),
        ("deadline", "tomorrow", "with its zone"),
        ("interruptible", "yes", "true or false"),
        ("name", "Train", "a-z, 0-9"),
        ("name", "a\n", "a-z, 0-9"),
        ("image", "docker.io/x; rm -rf /", "an image"),
        ("image", "../../etc", "an image"),
        ("workdir", "scratch", "begins with '/'"),
        ("checkpoint", "a/../../b", "without '..'"),
        ("unit_regex", "(", "a regular expression"),
        ("isolation", "docker", "one of sandbox, podman, none"),
        ("command", {"a": 1}, "a text, or a list"),
        ("command", [], "a text, or a list"),
        ("command", ["a\0b"], "without NUL"),
        ("command", ["a", ["b"]], "a text"),
        ("command", "\ud800", "broken characters"),
        ("environment", {"A-B": "1"}, "variables named by"),
        ("environment", {"A": ["1"]}, "a text"),
        ("environment", ["A"], "NAME=VALUE, or a mapping"),
        ("environment", ["A=1", "A=2"], "each NAME once"),
        ("secrets", {"A": "../key"}, "a name of a-z"),
        ("inputs", {"/../x": "x"}, "without '..'"),
        ("inputs", {"x": "../x"}, "a file's name"),
        ("inputs", {"x": "a//b"}, "a file's name"),
        ("outputs", ["."], "a path"),
        ("outputs", ["a\x1b[2Jb"], "control characters"),
        ("volumes", {"data": "imagenet"}, "begins with '/'"),
        ("egress", ["exa mple"], "a host or network"),
        ("gpu", "RTX\x1b[31m", "a GPU model"),
    ],
)
def test_a_value_that_cannot_stand_is_refused_with_what_was_expected(
    field: str, value: Any, expected: str
):
    refused = _refused({"command": ["a"], "gpus": 1, field: value})
    assert refused.field.partition(".")[0].partition("[")[0] == field
    assert expected in refused.expected
    assert refused.found in refused.message
    assert refused.hint
    assert refused.message.isprintable()


def test_fields_are_held_against_one_another():
    assert _refused({}).field == "command"
    assert _refused({"command": ["a"], "unit_regex": "x"}).field == "unit"
    assert _refused({"command": ["a"], "egress": ["x"], "network": "none"}).field == "network"
    assert _refused({"command": ["a"], "image": "x", "isolation": "none"}).field == "isolation"
    assert _refused({"command": ["a"], "isolation": "podman"}).field == "image"
    assert _refused({"command": ["a"], "gpu": "H100"}).field == "gpus"
    assert _refused([]).field == "the job"
    assert _refused(None).found == "None"


def test_a_misspelt_field_is_refused_with_its_line_and_the_field_that_was_meant():
    data, source = load_yaml("job.yaml", "command: [a]\n\ntime-limit: 2h\n", "job")
    refused = _refused(data, source=source)
    assert refused.where == ("job.yaml:3   time-limit: 2h",)
    assert refused.expected == "'time_limit'"
    data, source = load_yaml("job.yaml", "command: [a]\ninputs:\n  - x\n  - ../y\n", "job")
    refused = _refused(data, source=source)
    assert refused.lines()[:2] == [
        "error[job/field]: inputs[1] is '../y'; expected a path without '..' and control characters, "
        "such as data/train.csv",
        "  job.yaml:4   - ../y",
    ]
    told = refused.as_json()["error"]
    assert (told["field"], told["found"]) == ("inputs[1]", "'../y'")


def _offer(**more: Any) -> OwnOffer:
    given: dict[str, Any] = {
        "offer": "o", "name": "o", "gpu": "RTX 4090", "gpus": 1, "cpus": 8, "memory_mib": 1000, "disk_mib": 1000,
        "plan_name": "p", "plan": "{}", "rate": None, "currency": "EUR", "interruptible": False, "least_us": None,
        "most_us": None, "notice_us": 0, "sla": None, "audience": "public", "channel": "own", "nodes": ("n",),
        "isolation": "sandbox", "document": None,
    }  # fmt: skip
    return OwnOffer(**{**given, **more})


def test_a_job_that_asks_for_more_than_its_offer_or_lease_has_is_refused():
    spec = job_spec(
        {
            "command": ["a"],
            "gpus": 1,
            "gpu": "NVIDIA GeForce RTX 4090",
            "cpus": 8,
            "memory": "1000MiB",
            "disk": "1000MiB",
        }
    )
    check_within(spec, _offer(), "offer o")
    assert needs_of_offer(_offer()).nodes == ("n",)
    for less, field in (
        ({"gpus": 0}, "gpus"),
        ({"cpus": 7}, "cpus"),
        ({"memory_mib": 9}, "memory"),
        ({"gpu": "H100"}, "gpu"),
    ):
        with pytest.raises(FieldError) as caught:
            check_within(spec, _offer(**less), "offer o")
        assert caught.value.field == field
    with pytest.raises(FieldError, match="at most 0"):
        check_within(spec, placed(node("n", cpus=9), cpus=9, memory=2000), "the lease")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("python", "-u", "/srv/Train_v2.py", "--x"), "train-v2"),
        (("torchrun", "--nproc", "2", "train.py"), "train"),
        (("/bin/sh", "-c", "python train.py | tee log"), "train"),
        (("/usr/bin/nvidia-smi",), "nvidia-smi"),
        (("...",), "job"),
        (("/bin/sh", "-c", " "), "job"),
        (("é" * 300,), "job"),
    ],
)
def test_a_job_without_a_name_is_called_after_what_it_runs(command: tuple[str, ...], name: str):
    assert name_from(command) == name


def test_every_field_of_a_job_has_a_flag_and_stands_in_the_guide():
    guide = GUIDE.read_text("utf-8")
    told = dict(re.findall(r"^\| `([a-z_]+)` \| `([^`]+)` \|", guide, re.M))
    assert told == {field.name: field.flag for field in FIELDS}
    units = {"memory": "memory_mib", "disk": "disk_mib"}
    names = {units.get(f.name, f.name) for f in FIELDS}
    timed = {f"{name}_us" for name in ("time_limit", "grace", "deadline", "stop_idle")}
    plain = {
        each.name.removesuffix("_us") if each.name in timed else each.name
        for each in fields(JobSpec)
    }
    assert plain == names


def test_the_examples_of_the_fields_are_read():
    for field in FIELDS:
        data, _ = load_yaml("x", f"{field.name}: {field.example}\n", "job")
        field.read(data[field.name])
    for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text("utf-8"), re.S):
        job_spec(*load_yaml("guide", block, "job"))


# What a stranger may send

EXAMPLES = {f.name: load_yaml("x", f"v: {f.example}", "job")[0]["v"] for f in FIELDS}
LETTERS = string.printable + "é\u202e\ud800\0\x1b😀"
HOSTILE: tuple[Any, ...] = (
    None, True, 0, -1, 10**40, 2**63, Decimal("1.5"), Decimal("NaN"), Decimal("Infinity"), Decimal("1E+999999"), 1.5,
    float("nan"), "", " ", "0", "-0", "1e9", "8GiB", "9" * 5000, "2h", "1h" * 50, "../..", "/", "a=b", "=", "a=",
    "x" * 200_000, "\0", "\ud800", b"bytes", object(), (), [], {}, [[]], [None], {"": ""}, {None: 1}, {1: 2},
    ["a=b"] * 3, [{"a": "b"}], {"a": {"b": {"c": "d"}}}, ["a"] * 1001, "(a+)+$", "(" * 500, "2026-12-01T08:00:00Z",
    "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00",
)  # fmt: skip


def _anything(chance: Random, depth: int = 0) -> Any:
    roll = chance.randrange(12)
    if roll < 5:
        return chance.choice(HOSTILE)
    if roll < 8:
        return "".join(chance.choice(LETTERS) for _ in range(chance.randrange(12)))
    if roll < 9:
        return chance.randint(-(10**6), 10**6)
    if depth > 2:
        return None
    if roll == 9:
        return [_anything(chance, depth + 1) for _ in range(chance.randrange(4))]
    if roll == 10:
        return {
            str(_anything(chance, 3)): _anything(chance, depth + 1)
            for _ in range(chance.randrange(4))
        }
    return chance.choice(FIELDS).example


def _mapping(chance: Random) -> dict[Any, Any]:
    data: dict[Any, Any] = {"command": ["a"]} if chance.random() < 0.8 else {}
    for _ in range(chance.randrange(1, 4)):
        field = chance.choice(FIELDS)
        data[field.name] = EXAMPLES[field.name] if chance.random() < 0.6 else _anything(chance)
    if chance.random() < 0.02:
        data[chance.choice([None, 1, "x" * 10_000, "\x1b", (1,), "comand"])] = 1
    return data


def _fuzz(seed: int, count: int) -> int:
    """Try so many mappings; how many became jobs. A job that comes out can be kept as a fact and be placed."""
    chance, read = Random(seed), 0
    for _ in range(count):
        data = _mapping(chance)
        try:
            spec = job_spec(data)
        except FieldError as error:
            text = "\n".join(error.lines())
            assert len(text) < 2500
            assert text.replace("\n", "").isprintable()
            continue
        read += 1
        _keepable(spec)
        assert needs_of(spec).cpus >= 1
        assert not any(
            ".." in c.path.split("/") or ".." in c.name for c in (*spec.inputs, *spec.outputs)
        )
    return read


def _keepable(spec: JobSpec) -> None:
    """It stands as a fact, and reads back as it was."""
    job = JobSubmitted(job="j", org="o", project="p", user="u", offer="o", lease=None, spec=spec)
    fact = fact_of(
        job, source="s", id="f", subject="j", valid_from=1, valid_to=None, grade=Grade.REPORTED
    )
    assert payload_fault(fact) is None
    assert read(fact) == job


def test_a_few_thousand_strange_mappings_are_read_or_refused():
    assert _fuzz(1, 6000) > 1000


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_strange_mappings_are_read_or_refused(seed: int):
    assert _fuzz(100 + seed, 10_000)


def test_a_shells_job_is_named_for_what_the_shell_runs():
    assert name_from(("bash", "-c", "echo /proc/self/cgroup; sleep 3")) == "echo"
    assert name_from(("/bin/sh", "-c", "python train.py")) == "train"
    assert name_from(("sh",)) == "sh"

"""What is made of inventories: shapes, the text of every file, and that nothing in a name or a word becomes a setting."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouvrage.adapters.slurm_conf import read_conf
from ouvrage.base.errors import OuvrageError
from ouvrage.fleet.joining import Told, gpu_refusals, same_elsewhere, told_refusals
from ouvrage.fleet.plan import CONTROLLER, NODE, Keys, plan_of
from ouvrage.fleet.shape import shape_of, type_of
from ouvrage.fleet.slurm_files import gres_conf, slurm_conf
from ouvrage.fleet.standing import said_of, standing_of
from ouvrage.fleet.submit_lua import job_submit_lua
from ouvrage.model.bringup import FleetGpu, FleetMember, FleetSettings
from ouvrage.model.health import NodeInventory, Part, Place, Way
from ouvrage.model.work import Named

KEYS = Keys(munge=b"m" * 1024, jwt=b"j" * 32, password="ab" * 24)
ADDRESSES = ("0000:01:00.0", "0000:41:00.0", "0000:81:00.0", "0000:c1:00.0")


def part(kind: str, slot: str, size: str | None = None, **more: Any) -> Part:
    values: dict[str, Any] = {"maker": None, "model": None, "serial": None, "version": None}
    return Part(kind=kind, slot=slot, size=size, **{**values, **more})


def inventory(node: str = "n1", *, gpus: int = 2, model: str = "NVIDIA H100 80GB HBM3", **more: Any) -> NodeInventory:  # fmt: skip
    parts = [
        part("cpu", "socket 0", "32 cores"),
        part("cpu", "socket 1", "32 cores"),
        *(part("dimm", f"A{i}", "64 GiB") for i in range(16)),
        *(part("gpu", slot, model=model, serial=f"{node}-{slot}") for slot in ADDRESSES[:gpus]),
    ]
    places = tuple(
        Place(slot=slot, path=(), numa=0, cpus=None, width_max=16, speed_max=None)
        for slot in ADDRESSES[:gpus]
    )
    values: dict[str, Any] = {"parts": tuple(parts), "places": places}
    return NodeInventory(node=node, boot="", **{**values, **more})


def member(node: str = "n1", *, now: NodeInventory | None = None, **more: Any) -> FleetMember:
    shape = shape_of(now or inventory(node))
    values: dict[str, Any] = {
        "node": node, "host": node, "address": node, "port": None, "sockets": shape.sockets, "cores": shape.cores,
        "threads": shape.threads, "memory_mib": shape.memory_mib, "gpus": shape.gpus, "devices": "/dev/nvidia",
        "build": "h100", "certificate": "", "inventory": "", "allowed": (), "said": (), "removed": False, "why": "",
    }  # fmt: skip
    return FleetMember(**{**values, **more})


def settings(**more: Any) -> FleetSettings:
    values: dict[str, Any] = {
        "cluster": "lab", "controller": "head", "address": None, "build": "h100", "work_class": "batch", "root": "",
        "controller_port": 6817, "node_port": 6818, "accounting_port": 6819, "rest_port": 6820, "database": "localhost",
        "database_port": 3306, "settings": (), "refused": (),
    }  # fmt: skip
    return FleetSettings(**{**values, **more})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA GeForce RTX 4090", "rtx_4090"),
        ("Tesla V100-SXM2-16GB", "v100"), ("NVIDIA GeForce GTX 1080 Ti", "gtx_1080_ti"), ("NVIDIA L40S", "l40s"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx_6000_ada"), ("NVIDIA TITAN V", "titan_v"), ("Quadro 8000", "gpu_8000"),
        ("x=1 NodeName=y\nz", "x_1"), ("", "gpu"),
    ],
)  # fmt: skip
def test_a_type_is_the_short_word_of_a_model(model: str, name: str) -> None:
    assert type_of(model) == name


@given(st.text(max_size=60))
def test_a_type_can_always_stand_in_slurms_files(model: str) -> None:
    found = type_of(model)
    assert found.isascii()
    assert found.replace("_", "").isalnum()
    assert found[0].isalpha()


def test_a_shape_is_made_of_parts() -> None:
    found = shape_of(inventory())
    assert (found.sockets, found.cores, found.threads) == (2, 32, 1)
    assert found.memory_mib == 1_048_576 * 95 // 100
    both = (Named(name="hyperthreading", value="on"),)
    assert shape_of(inventory(settings=both)).threads == 2
    assert shape_of(inventory(), memory_mib=5, gpu_type="big").memory_mib == 5
    assert {gpu.type for gpu in shape_of(inventory(), gpu_type="big").gpus} == {"big"}


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ((part("dimm", "A", "1 GiB"),), "fleet/not-told"),
        ((part("cpu", "0", "4 cores"),), "fleet/not-told"),
        ((part("cpu", "0"), part("dimm", "A", "1 GiB")), "fleet/not-told"),
        ((part("cpu", "0", "0 cores"), part("dimm", "A", "1 GiB")), "fleet/not-told"),
        ((part("cpu", "0", "4 cores"), part("dimm", "A", "64 Gib")), "fleet/not-told"),
        ((part("cpu", "0", "4 cores"), part("cpu", "1", "8 cores"), part("dimm", "A", "1 GiB")), "fleet/uneven"),
        ((part("cpu", "0", "70000 cores"), part("dimm", "A", "1 GiB")), "fleet/not-told"),
        ((part("cpu", "0", "9" * 30 + " cores"), part("dimm", "A", "1 GiB")), "fleet/not-told"),
        ((part("cpu", "0", "4 cores"), part("dimm", "A", "999999999999 TiB")), "fleet/not-told"),
        ((part("cpu", "0", "4 cores"), part("dimm", "A", "1 GiB"), part("gpu", "x")), "fleet/not-told"),
    ],
)  # fmt: skip
def test_a_figure_that_cannot_be_made_is_refused(parts: tuple[Part, ...], code: str) -> None:
    with pytest.raises(OuvrageError) as refused:
        shape_of(inventory(parts=parts))
    assert refused.value.code == code


def test_what_is_written_parses_and_says_what_was_meant() -> None:
    own = (Named(name="SlurmdTimeout", value="120"), Named(name="killwait", value="3"), Named(name="mpidefault", value="pmix"))  # fmt: skip
    members = [member("n1"), member("n2", now=inventory("n2", gpus=4, model="NVIDIA A100-SXM4-80GB"))]  # fmt: skip
    text = slurm_conf(settings(settings=own), members)
    conf = read_conf(text, "slurm.conf")
    assert conf.faults == ()
    assert (conf.value("SlurmdTimeout"), conf.value("KillWait")) == ("120", "3")
    assert text.lower().count("mpidefault") == 1
    assert "MpiDefault=none" not in text
    assert conf.value("AccountingStorageTRES") == "gres/gpu,gres/gpu:a100,gres/gpu:h100"
    assert "PartitionName=a100 Nodes=n2 " in text
    assert "Gres=gpu:a100:4 " in text
    assert gres_conf(members).splitlines()[1:] == [
        "NodeName=n1 Name=gpu Type=h100 File=/dev/nvidia[0-1]",
        "NodeName=n2 Name=gpu Type=a100 File=/dev/nvidia[0-3]",
    ]
    assert slurm_conf(settings(settings=own), members) == text


def test_nvlinks_are_told_for_each_gpu() -> None:
    ways = (
        Way(one=ADDRESSES[0], other=ADDRESSES[1], link="NV18"),
        Way(one=ADDRESSES[2], other=ADDRESSES[1], link="SYS"),
    )
    found = gres_conf([member(now=inventory(gpus=3, ways=ways))]).splitlines()[1:]
    assert [line.partition("File=")[2] for line in found] == [
        "/dev/nvidia0 Links=-1,18,0",
        "/dev/nvidia1 Links=18,-1,0",
        "/dev/nvidia2 Links=0,0,-1",
    ]


def test_mixed_gpus_keep_their_numbers() -> None:
    now = inventory(gpus=4)
    parts = tuple(
        replace(p, model="NVIDIA A100") if p.slot in (ADDRESSES[1], ADDRESSES[3]) else p
        for p in now.parts
    )
    found = gres_conf([member(now=replace(now, parts=parts))]).splitlines()[1:]
    assert [line.rpartition(" ")[0].rpartition("=")[2] for line in found] == ["h100", "a100"]
    assert [line.partition("File=")[2] for line in found] == ["/dev/nvidia[0,2]", "/dev/nvidia[1,3]"]  # fmt: skip


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=60)), max_size=4))
def test_refused_accounts_are_text_to_lua_whatever_they_hold(rows: list[tuple[str, str]]) -> None:
    refused = [Named(name=name, value=why) for name, why in rows]
    line = next(each for each in job_submit_lua([], refused).splitlines() if each.startswith("local REFUSED"))  # fmt: skip
    body = line.removeprefix("local REFUSED = ")
    outside = "".join(body.split('"')[0::2])
    assert set(outside) <= set("{}[]=, ")
    inside = [each.encode().decode("ascii") for each in body.split('"')[1::2]]
    told = [_lua(each) for each in inside]
    assert dict(zip(told[0::2], told[1::2], strict=True)) == dict(rows)


def _lua(text: str) -> str:
    """What Lua reads of a text without quotes in it: ``\\ddd`` is a byte."""
    data = bytearray()
    at = 0
    while at < len(text):
        if text[at] == "\\":
            data.append(int(text[at + 1 : at + 4]))
            at += 4
        else:
            data += text[at].encode()
            at += 1
    return data.decode()


def test_a_gpu_is_in_one_node() -> None:
    copied = member("n2", now=inventory("n1"))
    told = [each.words for each in same_elsewhere(copied, [member("n1")])]
    assert told == [f"GPU {i} with serial n1-{ADDRESSES[i]} is n1's GPU {i} too" for i in range(2)]
    assert list(same_elsewhere(member("n2"), [member("n1")])) == []
    capital = [each.words for each in same_elsewhere(member("N1"), [member("n1")])]
    assert "n1 is the same host name" in capital


def test_a_gpu_that_the_bus_does_not_have() -> None:
    now = inventory(gpus=2)
    told = list(gpu_refusals(member(now=now), replace(now, places=now.places[:1]), []))
    assert [each.words for each in told] == [
        f"GPU {ADDRESSES[1]} is told by the driver's library and not there on the bus"
    ]
    other = member("n2", now=inventory("n2", model="NVIDIA H100 PCIe"))
    told = list(gpu_refusals(member(now=now), now, [other]))
    assert [each.words for each in told] == [
        "NVIDIA H100 80GB HBM3 and NVIDIA H100 PCIe would both be asked for as h100"
    ]


def test_a_machine_that_finds_less_than_its_inventory() -> None:
    shape = shape_of(inventory())
    well = Told(slurmd={"SocketsPerBoard": "2", "CoresPerSocket": "32", "RealMemory": "1031000"}, devices=(0, 1))  # fmt: skip
    assert list(told_refusals(shape, well)) == []
    assert list(told_refusals(shape, replace(well, slurmd={"RealMemory": "x"}))) == []
    less = replace(well, slurmd={"RealMemory": "64000"}, devices=(0, 7))
    told = [each.words for each in told_refusals(shape, less)]
    assert told == [
        "its inventory has 2 GPUs, the machine has device files for 1",
        "RealMemory would be 996147, its slurmd finds 64000",
    ]


@pytest.mark.parametrize(
    ("pairs", "gpus", "controller", "told"),
    [
        ({"State": "IDLE", "Version": "22.05.8"}, 2, "22.05.8", ()),
        ({"State": "MIXED+PLANNED", "Version": "21.08.1"}, 2, "22.05.8", ()),
        ({"State": "DOWN*", "Reason": "Not responding [slurm@2026]"}, 2, None, ("down not responding: Not responding",)),
        ({"State": "IDLE+DRAIN", "Reason": "fan"}, 2, None, ("drain: fan",)),
        ({"State": "IDLE", "Version": "23.02.1"}, 2, "22.05.8",
         ("its Slurm 23.02.1 is newer than the controller's 22.05.8: the controller goes first",)),
        ({"State": "IDLE", "Version": "20.02.1"}, 2, "22.05.8",
         ("its Slurm 20.02.1 is more than 2 releases behind the controller's 22.05.8",)),
        ({"State": "IDLE"}, 4, None, ("Slurm has it with 4 GPUs, the fleet's files with 2: its controller has old files",)),
        ({"State": "IDLE+DRAIN+INVALID_REG", "Reason": "gres/gpu count reported lower than configured (1 < 2) [slurm@x]"}, 2, None,
         ("it promised 2 GPUs and its slurmd finds 1",)),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_node(
    pairs: dict[str, str], gpus: int, controller: str | None, told: tuple[str, ...]
) -> None:
    said = said_of(pairs, gpus)
    assert standing_of(member(), said, (), member(), controller, asked=True).wrong == told


def test_what_slurm_does_not_know_and_what_changed_since() -> None:
    found = standing_of(member(), None, (), member(now=inventory(gpus=4)), None, asked=True)
    assert found.state == "not known"
    assert found.wrong == (
        "Slurm does not know it: its controller has not read the files yet",
        "its inventory has 4 GPUs now, the fleet's files 2: ouvrage fleet upgrade",
    )
    assert standing_of(member(), None, (), member(), None, asked=False).wrong == ()


def test_secrets_are_where_they_must_be_and_nowhere_else() -> None:
    plan = plan_of(settings(), [member()], KEYS)
    secret = {each.path for each in plan.files if each.secret}
    for each in plan.files:
        assert each.secret == (KEYS.password.encode() in each.data or each.data in (KEYS.munge, KEYS.jwt))  # fmt: skip
        assert not each.secret or each.mode & 0o077 == 0
    assert "/etc/slurm/jwt_hs256.key" in secret
    assert not any(each.path in secret for each in plan.of(NODE) if each.path != "/etc/munge/munge.key")  # fmt: skip
    assert {"/etc/slurm/slurmdbd.conf", "/etc/slurm/job_submit.lua"} <= {each.path for each in plan.of(CONTROLLER)}  # fmt: skip


_ORDER = (
    "enable --quiet munge", "restart munge", "mariadb", "enable --quiet slurmdbd", "restart slurmdbd",
    "sacctmgr -i add cluster lab", "sacctmgr -i add qos interruptible",
    "sacctmgr -i modify qos normal set preempt=interruptible priority=10", "daemon-reload",
    "enable --quiet slurmctld slurmrestd", "restart slurmctld slurmrestd",
)  # fmt: skip


def test_the_script_puts_the_systems_own_files_in_place(tmp_path: Path) -> None:
    """In a namespace where the system's directories are empty ones; what it would start is written down."""
    if shutil.which("unshare") is None or subprocess.run(["id", "slurm"], check=False, capture_output=True).returncode:  # fmt: skip
        pytest.skip("no Slurm: tools/debian.sh test")
    from ouvrage.fleet.install import inside, install_sh

    plan = plan_of(settings(), [member()], KEYS)
    contents = {inside(each): each.data for each in plan.files}
    for name, data in {**contents, "install.sh": install_sh(plan).encode()}.items():
        (tmp_path / "plan" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plan" / name).write_bytes(data)
    programs, log = tmp_path / "bin", tmp_path / "told"
    programs.mkdir()
    for name in ("systemctl", "mariadb", "sacctmgr"):
        words = '"$@"' if name == "systemctl" else f'{name} "$@"'
        (programs / name).write_text(f"#!/bin/sh\necho {words} >> {log}\n")
        (programs / name).chmod(0o755)
    places = ("/etc/slurm", "/etc/munge", "/var/lib/slurm", "/var/log/slurm", "/etc/systemd/system")
    empty = "; ".join(f"mkdir -p {each} && mount -t tmpfs none {each}" for each in places)
    script = (
        f"set -e; {empty}; echo SlurmUser=them > /etc/slurm/slurm.conf; export PATH={programs}:$PATH; umask 077; "
        f"sh {tmp_path}/plan/install.sh all controller; cd /etc; "
        "stat -c '%n %U %a' munge/munge.key slurm/* slurm/ouvrage/* systemd/system/*/* /var/lib/slurm/slurmctld"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, check=False
    )
    if "permission denied" in done.stderr.lower():
        pytest.skip("no namespace of its own to write in")
    assert done.returncode == 0, done.stderr
    there = set(done.stdout.splitlines())
    assert {
        "munge/munge.key munge 400", "slurm/slurm.conf root 644", "slurm/slurmdbd.conf slurm 600", "slurm/jwt_hs256.key slurm 600",
        "slurm/slurm.conf.before-ouvrage root 644", "slurm/ouvrage/prolog root 755", "slurm/ouvrage/accounting.sql root 600",
        "systemd/system/slurmrestd.service.d/ouvrage.conf root 644", "/var/lib/slurm/slurmctld slurm 700",
    } <= there  # fmt: skip
    assert tuple(line.strip() for line in log.read_text().splitlines()) == _ORDER


def test_newer_packages_come_in_slurms_order_and_after_the_database_is_saved() -> None:
    lines = [
        (c.role, c.line) for c in plan_of(settings(), [member()], KEYS, packages=True).commands
    ]
    at = {word: next(i for i, (_, line) in enumerate(lines) if word in line) for word in (
        "stop slurmrestd slurmctld slurmdbd", "mariadb-dump", "slurm-wlm-mysql-plugin", "restart slurmdbd", "restart slurmctld",
        "restart slurmd")}  # fmt: skip
    assert list(at.values())[:3] == sorted(list(at.values())[:3])
    assert at["slurm-wlm-mysql-plugin"] < at["restart slurmdbd"] < at["restart slurmctld"]
    assert next(role for role, line in lines if "munge slurmd slurm-client" in line) == NODE
    far = plan_of(settings(database="db.example.org"), [member()], KEYS, packages=True).commands
    assert any("save slurm_acct_db of db.example.org" in each.line for each in far)
    assert not any("mariadb" in each.line for each in far if "dump" not in each.line)


def test_gpus_by_number() -> None:
    found = shape_of(inventory(gpus=2)).gpus
    assert found == tuple(
        FleetGpu(number=i, type="h100", model="NVIDIA H100 80GB HBM3", serial=f"n1-{ADDRESSES[i]}", links="")
        for i in range(2)
    )  # fmt: skip

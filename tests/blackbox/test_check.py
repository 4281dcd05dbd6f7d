"""``ouvrage check`` as a prolog, a timer and a person meet it: the verdict, the exit code, and its own errors."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import COMMAND, Home
from tests.support.nvml import Cards, build, compiler

LOST = (
    "[  100.000000] NVRM: Xid (PCI:0000:9b:00): 79, pid=1, name=python, GPU has fallen off the bus."
)
SPENT = {
    "smartctl": {"exit_status": 0},
    "device": {"name": "/dev/nvme9"},
    "smart_status": {"passed": True},
    "nvme_smart_health_information_log": {
        "critical_warning": 0, "available_spare": 0, "available_spare_threshold": 11, "percentage_used": 0,
        "media_errors": 0, "power_on_hours": 3258, "power_cycles": 24, "data_units_read": 5,
    },
}  # fmt: skip


@pytest.fixture
def place(ouvrage: Home) -> Path:
    """The directory in which the commands run, with saved files in it."""
    folder = ouvrage.path.parent
    (folder / "spent.json").write_text(json.dumps(SPENT))
    (folder / "lost.log").write_text(f"{LOST}\n")
    (folder / "quiet.log").write_text("[    0.000000] Linux version 6.8\n")
    (folder / "worn.log").write_text("[  9.000000] NVRM: Xid (PCI:0000:9b:00): 92, pid=1, x\n")
    (folder / "gpu.prom").write_text('nvidia_smi_gpu_recovery_action{uuid="GPU-1"} 0\n')
    return folder


@pytest.mark.parametrize(
    ("words", "code", "first"),
    [
        (("smart", "--from", "spent.json"), 2, "CRITICAL (reported) smart: /dev/nvme9: available spare is 0 %"),
        (("xid", "--from", "lost.log"), 2, "CRITICAL (reported) xid: 0000:9b:00: Xid 79, GPU no longer answers on PCIe"),
        (("xid", "--from", "quiet.log"), 0, "OK (reported) xid: no fault of a GPU in 1 lines of the kernel's log"),
        (("xid", "--from", "worn.log"), 1, "WARN (reported) xid: 0000:9b:00: Xid 92, high rate of corrected memory"),
        (("gpu", "--from", "gpu.prom"), 0, "OK (reported) gpu: GPU-1: the GPU: the driver asks for nothing"),
        (("gpu", "--from", "gpu.prom", "--expect", "2"), 2, "CRITICAL (reported) gpu: 1 of 2 GPUs are missing"),
        (("gpu", "--from", "quiet.log"), 3, "UNKNOWN (reported) gpu: no GPU was found in what was read"),
        (("xid", "--from", "spent.json"), 3, "UNKNOWN (reported) xid: no line of a kernel's log was found"),
    ],
)  # fmt: skip
def test_the_exit_code_is_the_verdict(
    ouvrage: Home, place: Path, words: tuple[str, ...], code: int, first: str
) -> None:
    said = ouvrage.inside("check", *words, "--plain")
    assert said.code == code, said
    assert said.first.startswith(first)
    assert said.out.splitlines()[-1].startswith("more ")
    told = ouvrage.inside("check", *words, "--json")
    assert (told.code, told.json["verdict"]) == (code, said.first.split()[0])
    assert {"verdict", "evidence", "action"} <= told.json.keys()
    assert not ouvrage.path.exists(), "a check records nothing"


def test_from_a_verdict_to_the_page_that_says_what_to_do(ouvrage: Home, place: Path) -> None:
    said = ouvrage("check", "xid", "--from", "lost.log")
    assert said.code == 2
    assert "what to do   keep new work away, let it end, reboot the machine" in said.out
    page = next(line.split()[1] for line in said.out.splitlines() if line.startswith("how "))
    assert (Path(__file__).parents[2] / page).exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "check/usage"),
        (("--nonsense",), "check/usage"),
        (("xid", "more"), "check/usage"),
        (("smarrt",), "check/name"),
        (("xid", "--from", "nowhere.log"), "check/file"),
        (("smart", "--from", "lost.log"), "check/json"),
        (("time", "--from", "lost.log"), "check/from"),
        (("all", "--from", "lost.log"), "check/from"),
        (("gpu", "--expect", "many"), "check/usage"),
        (("xid", "--since", "yesterday"), "check/since"),
    ],
)
def test_every_error_of_its_own_is_3(
    ouvrage: Home, place: Path, words: tuple[str, ...], code: str
) -> None:
    said = ouvrage.inside("check", *words)
    assert (said.code, f"error[{code}]" in said.err) == (3, True), said
    told = ouvrage.inside("check", *words, "--json")
    assert (told.code, told.json["verdict"], told.json["error"]["code"]) == (3, "UNKNOWN", code)


def test_a_fault_inside_the_check_is_3_as_well(
    ouvrage: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("made for this test")

    monkeypatch.setattr("ouvrage.cli.check.thresholds", broken)
    said = ouvrage.inside("check", "time")
    assert (said.code, "check/internal" in said.err) == (3, True)
    assert "ZeroDivisionError" in said.err


def test_a_reader_that_goes_away_changes_no_verdict(ouvrage: Home, place: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    code = subprocess.run(
        [*COMMAND, "check", "xid", "--from", "lost.log"], stdout=writing, env=dict(ouvrage.environment),
        cwd=place, check=False,
    ).returncode  # fmt: skip
    os.close(writing)
    assert code == 2


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_no_room_for_its_words_changes_no_verdict(ouvrage: Home, place: Path) -> None:
    """The prolog of the guide writes to /run: a full one must not let work onto a sick node."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "check", "xid", "--from", "lost.log"], stdout=full, stderr=subprocess.PIPE,
            env=dict(ouvrage.environment), cwd=place, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert b"output/not-written" in done.stderr


def test_spoilt_bytes_hide_no_fault(ouvrage: Home, place: Path) -> None:
    (place / "spoilt.log").write_bytes(f"{LOST}\n".encode() + b"[  101.000000] caf\xe9\n")
    assert ouvrage.inside("check", "xid", "--from", "spoilt.log").code == 2
    half = {**SPENT, "model_name": "SSD \ud800\x1b[2J"}
    (place / "half.json").write_text(json.dumps(half))
    told = ouvrage.inside("check", "smart", "--from", "half.json", "--json")
    assert (told.code, told.json["verdict"]) == (2, "CRITICAL")
    assert "\x1b" not in ouvrage.inside("check", "smart", "--from", "half.json").out


def test_help_is_0(ouvrage: Home) -> None:
    said = ouvrage.inside("check", "--help")
    assert said.code == 0
    assert "Exit code: 0 OK, 1 WARN, 2 CRITICAL, 3 UNKNOWN" in said.out


def tree(root: Path, gpus: int = 0) -> list[str]:
    """A machine of files: its roots as options."""
    for name, text in {
        "proc/self/mounts": f"none {root} tmpfs rw 0 0\n",
        "proc/meminfo": "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n",
        "sys/devices/system/edac/mc/mc0/ce_count": "0",
        "sys/devices/system/edac/mc/mc0/ue_count": "0",
        "kmsg": "6,1,0,-;Linux version 6.8\n",
        "etc/fstab": "# nothing\n",
        **{f"sys/bus/pci/devices/{n}/class": "0x030200" for n in range(gpus)},
        **{f"sys/bus/pci/devices/{n}/vendor": "0x10de" for n in range(gpus)},
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    words = [f"--{name}={root}/{name}" for name in ("proc", "sys", "kmsg", "etc")]
    return [*words, f"--path={root}"]


def test_all_of_a_machine_and_what_it_does_not_have_is_left_out(
    ouvrage: Home, tmp_path: Path
) -> None:
    machine = tree(tmp_path / "machine")
    said = ouvrage.inside("check", "all", *machine, "--json")
    value = said.json
    assert {part["check"] for part in value["parts"]} == {
        "xid", "gpu", "smart", "space", "mounts", "memory", "edac", "time",
        "inventory",
    }  # fmt: skip
    by_name = {part["check"]: part for part in value["parts"]}
    assert by_name["gpu"]["rule"] == "gpu/none"
    assert by_name["smart"]["rule"] == "smart/none"
    judged = {name: by_name[name]["verdict"] for name in ("xid", "memory", "edac", "mounts")}
    assert judged == dict.fromkeys(judged, "OK")
    assert value["verdict"] in ("OK", "WARN"), "whether this machine's own clock is kept"
    assert said.code == ["OK", "WARN"].index(value["verdict"])

    (tmp_path / "machine/kmsg").write_text(f"4,1,0,-;{LOST.partition('] ')[2]}\n")
    (tmp_path / "machine/sys/devices/system/edac/mc/mc0/ue_count").write_text("2")
    sick = ouvrage.inside("check", "all", *machine)
    assert sick.code == 2
    assert sick.first.startswith("CRITICAL ● 0000:9b:00: Xid 79")
    assert "mc0: 2 memory errors were not corrected" in sick.out
    assert "not here" in sick.out


def test_a_gpu_that_is_expected_and_not_there(ouvrage: Home, tmp_path: Path) -> None:
    alone = ouvrage.inside("check", "gpu", *tree(tmp_path / "machine"))
    assert (alone.code, alone.first) == (3, "UNKNOWN ● gpu: this machine has no NVIDIA GPU")


@pytest.fixture
def machine(ouvrage: Home, tmp_path: Path) -> tuple[Home, Cards, list[str]]:
    """A machine whose PCI bus lists two GPUs, and the stand-in for their library."""
    if compiler() is None:
        pytest.skip("no C compiler to build the stand-in for the library")
    folder = tmp_path / "library"
    folder.mkdir()
    cards = Cards(build(folder), tmp_path / "cards")
    cards.set(count=2, gpu0__recovery_action=0, gpu1__recovery_action=0)
    home = replace(ouvrage, environment={**ouvrage.environment, **cards.environment})
    return home, cards, tree(tmp_path / "machine", gpus=2)


def test_gpus_through_their_library_well_and_sick(machine: tuple[Home, Cards, list[str]]) -> None:
    home, cards, roots = machine

    def verdict(**changes: object) -> tuple[int, str, str]:
        cards.set(**changes)
        said = home("check", "gpu", *roots, "--json")
        return said.code, said.json["verdict"], said.json["rule"]

    assert verdict() == (0, "OK", "")
    assert verdict(gpu1__ecc_uncorrected_aggregate=5) == (0, "OK", "")
    assert verdict(gpu1__recovery_action=2) == (2, "CRITICAL", "recovery-action")
    assert verdict(gpu1__recovery_action=0, gpu0__remapped_failed=1) == (
        2,
        "CRITICAL",
        "remap-failure",
    )
    assert verdict(gpu0__remapped_failed=0, gpu1__lost=1) == (2, "CRITICAL", "gpu-lost")
    assert verdict(gpu1__lost=0, count=1) == (2, "CRITICAL", "gpu-missing")
    assert verdict(count=2, init=999) == (3, "UNKNOWN", "gpu/not-told")
    assert verdict(init=0, crash=1) == (3, "UNKNOWN", "gpu/not-told")


def test_a_library_that_hangs_is_unknown_within_its_deadline(
    machine: tuple[Home, Cards, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, cards, roots = machine
    for name, value in cards.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("ouvrage.adapters.nvml_health.DEADLINE_S", 0.5)
    cards.set(hang=1)
    said = home.inside("check", "gpu", *roots)
    assert said.code == 3
    assert "did not end within" in said.first


DATA = os.environ.get("OUVRAGE_DATA", "")


@pytest.mark.skipif(not DATA, reason="OUVRAGE_DATA is not set")
@pytest.mark.parametrize(
    ("check", "file", "code"),
    [
        ("smart", "smartctl/gcm_learn_bad_nvme9_nvme9.json", 2),
        ("smart", "smartctl/gcm_learn_bad_nvme9_nvme2.json", 0),
        ("smart", "smartctl/sat-Phison_Driven_SSDs-KINGSTON_SA400M8120G-sda.json", 0),
        ("xid", "kernel_log/dmesg-with-xid-119.log", 2),
        ("xid", "kernel_log/kmsg.1.log", 0),
        ("gpu", "gpu_metrics/linux-x86_64__nvidia-h200__590.48.01__load.metrics", 0),
        ("gpu", "gpu_metrics/linux-x86_64__nvidia-h100-mig__590.48.01__idle.metrics", 0),
    ],
)
def test_real_files(ouvrage: Home, check: str, file: str, code: int) -> None:
    assert ouvrage.inside("check", check, "--from", f"{DATA}/{file}").code == code

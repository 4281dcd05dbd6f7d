"""From an empty home: what a machine is made of, a change, a build, a patch; each as its owner meets it."""

from __future__ import annotations

import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.base.grades import Grade
from ouvrage.health.certificates import part_ids
from ouvrage.ledger.kinds import fact_of, from_plain
from ouvrage.model.health import Part
from ouvrage.store.store import open_store
from tests.blackbox.home import Home, Said
from tests.support.machine_tree import Machine
from tests.support.proofs import certificate

GPU = "pci0000:80/0000:80:01.0/0000:81:00.0"
APT = (
    "Inst runc [1.1.5-1] (1.1.15-1 Debian-Security:12/stable-security [amd64])\n"
    "Inst nvidia-driver [550.90.07-1] (550.144.03-1 NVIDIA:cuda [amd64])\n"
)


@pytest.fixture
def machine(ouvrage: Home) -> Machine:
    return Machine(ouvrage.path.parent / "tree").write()


def ask(home: Home, *words: str, code: int = 0) -> Said:
    said = home.inside(*words)
    assert said.code == code, said
    return said


def check(home: Home, machine: Machine, code: int) -> Said:
    roots = [f"--{name}={machine.root / name}" for name in ("proc", "sys", "etc", "var")]
    return ask(home, "check", "inventory", "--node", "node-1", *roots, "--plain", code=code)


def kinds(home: Home) -> list[str]:
    """The kinds of the facts about nodes and builds, in the order they were recorded."""
    told = [str(cell) for row in home.facts() for cell in row if str(cell).startswith("node.")]
    return [each for each in told if "/" not in each and " " not in each]


def here(machine: Machine) -> tuple[str, ...]:
    return ("node-1", "--root", str(machine.root))


def test_a_change_is_a_fact_and_a_warning_until_it_is_accepted(
    ouvrage: Home, machine: Machine
) -> None:
    assert "no inventory that was accepted" in check(ouvrage, machine, 3).out
    first = ask(ouvrage, "node", "inventory", *here(machine), "--plain")
    assert first.first == (
        "node-1: 2 CPUs, 2 DIMMs, 3 boards, 1 disk, 1 network card, 2 GPUs, 1 power supply (reported)"
    )
    assert "GPU to gpu   1 by SYS (PCIe and the link between processors)" in first.out
    assert first.out.splitlines()[-1].startswith("more ")
    ask(ouvrage, "node", "inventory", *here(machine))
    assert kinds(ouvrage) == ["node.inventory"], "the same at the same boot is no news"
    assert "as accepted" in check(ouvrage, machine, 0).first

    machine.modules = (("P0 A1", "D-1"), ("P1 A1", "D-9"))
    machine.boot = machine.boot.replace("1", "2")
    machine.write()
    said = check(ouvrage, machine, 1)
    assert said.first == (
        "WARN (measured) inventory: dimm BANK 0 P1 A1 was replaced: "
        "Samsung M321R8GA0BB0 64 GiB, serial D-2 → Samsung M321R8GA0BB0 64 GiB, serial D-9"
    )
    again = ask(ouvrage, "node", "inventory", *here(machine))
    assert "1 change since it was accepted" in again.first
    assert kinds(ouvrage) == ["node.inventory"] * 2
    check(ouvrage, machine, 1)

    refused = ask(ouvrage, "node", "inventory", *here(machine), "--accept", code=2)
    assert "error[inventory/accept]" in refused.err
    ask(ouvrage, "node", "inventory", *here(machine), "--accept", "--why", "D-2 was broken")
    assert kinds(ouvrage)[-1] == "node.inventory_accepted"
    check(ouvrage, machine, 0)
    ask(ouvrage, "verify")


def test_less_rights_are_no_change_and_a_lost_gpu_is(ouvrage: Home, machine: Machine) -> None:
    ask(ouvrage, "node", "inventory", *here(machine))
    (machine.root / "sys/firmware/dmi/tables/DMI").unlink()
    assert "not told: board, dimm, psu" in check(ouvrage, machine, 0).out
    del machine.gpus[GPU]
    machine.write()
    assert "gpu 0000:81:00.0 is gone" in check(ouvrage, machine, 1).first
    told = ask(ouvrage, "node", "inventory", *here(machine), "--json").json
    assert [(each["what"], each["slot"]) for each in told["changes"]] == [
        ("removed", "0000:81:00.0")
    ]
    assert told["accepted"] is False


def test_a_part_knows_what_it_was_bought_for(ouvrage: Home, machine: Machine) -> None:
    words = "--electricity 0.28/kWh --node node-1 --gpus 2 --model H100 --price 50000 --since 2026-01-05"
    ask(ouvrage, "init", *words.split())
    bought = "--of node:node-1 --price 310 --bought 2026-03-02 --warranty-until 2029-03-01 --life-months 36"
    ask(
        ouvrage,
        "own",
        "asset",
        "dimms",
        *bought.split(),
        "--serial",
        "D-1",
        "--serial",
        "D-7",
        "--supplier",
        "Acme",
    )
    said = ask(ouvrage, "node", "inventory", *here(machine), "--plain")
    row = next(line for line in said.out.splitlines() if "P0 A1" in line)
    assert row.endswith("310 EUR (reported) 2026-03-02 from Acme, warranty to 2029-03-01")
    assert "not there    dimms: bought with serial D-7" in said.out
    told = ask(ouvrage, "node", "inventory", *here(machine), "--json").json
    dimm = next(part for part in told["parts"] if part["serial"] == "D-1")
    assert (dimm["bought"]["asset"], dimm["bought"]["by"]) == ("dimms", "serial")
    board = next(part for part in told["parts"] if part["slot"] == "board")
    assert board["bought"]["by"] == "node"
    assert "part/dimms" in ask(ouvrage, "own", "show").out
    refused = ask(ouvrage, "own", "asset", "x", *bought.split(), "--slot", "wheel:1", code=2)
    assert "error[own/slot]" in refused.err


def test_a_build_and_every_deviation_from_it(ouvrage: Home, machine: Machine) -> None:
    refused = ask(ouvrage, "build", "save", "h100-2", "--node", *here(machine), code=2)
    assert "error[build/unproven]" in refused.err
    proven = ("--unproven", "--why", "the first one")
    saved = ask(
        ouvrage,
        "build",
        "save",
        "h100-2",
        "--node",
        *here(machine),
        *proven,
        "--allow",
        "package:ba*",
    )
    assert saved.first.startswith("h100-2: saved from node-1 (unproven): 2 CPUs, 2 DIMMs")
    compare = (
        "node",
        "compare",
        "node-2",
        "--root",
        str(machine.root),
        "--build",
        "h100-2",
        "--plain",
    )
    assert ask(ouvrage, *compare).first == "OK (reported) node-2 is as build h100-2"

    machine.modules = (("P0 A1", "D-3"), ("P1 A1", "D-4"))  # other serial numbers
    machine.packages["bash"] = ("install", "5.3")  # which it lets differ
    said = ask(
        ouvrage,
        "node",
        "compare",
        "node-2",
        "--root",
        str(machine.write().root),
        "--build",
        "h100-2",
    )
    assert "(1 found)" in said.out

    machine.driver, machine.firmware, machine.kernel = "535.1", "20.40", "6.8.0"
    machine.packages["containerd.io"] = ("hold", "1.8")
    machine.settings["sys/vm/swappiness"] = "60"
    machine.write()
    told = ask(ouvrage, *compare, "--json", code=1).json
    assert [(each["sort"], each["name"]) for each in told["deviations"]] == [
        ("firmware", "nic 0000:02:00.0"),
        ("software", "containerd.io"),
        ("software", "kernel"),
        ("software", "nvidia driver"),
        ("package", "containerd.io"),
        ("setting", "swappiness"),
    ]
    assert told["verdict"] == "WARN"
    assert told["may_differ"] == [
        "serial numbers",
        "network addresses",
        "host names",
        "package:ba*",
    ]


def test_a_build_with_a_part_missing_or_not_told(ouvrage: Home, machine: Machine) -> None:
    proven = ("--unproven", "--why", "the first one")
    ask(ouvrage, "build", "save", "h100-2", "--node", *here(machine), *proven)
    compare = (
        "node",
        "compare",
        "node-2",
        "--root",
        str(machine.root),
        "--build",
        "h100-2",
        "--plain",
    )
    machine.table = False
    machine.write()
    assert ask(ouvrage, *compare, code=3).first.startswith("UNKNOWN (reported) node-2 deviates")
    del machine.gpus[GPU]
    machine.write()
    said = ask(ouvrage, *compare, code=2)
    assert said.first.endswith("1 of them parts")
    assert "CRITICAL  part" in said.out
    assert "unproven     h100-2 was saved without a certificate" in said.out
    assert ask(ouvrage, "node", "compare", "--build", "none", code=3).err.startswith(
        "error[build/unknown]"
    )
    assert ask(ouvrage, "node", "compare", code=3).err.startswith("error[check/usage]")

    assert ask(ouvrage, "build", "list").first == "1 build"
    assert "may differ   serial numbers" in ask(ouvrage, "build", "show", "h100-2").out
    ask(ouvrage, "build", "remove", "h100-2", "--why", "old")
    assert ask(ouvrage, "build", "list").first == "0 builds"
    assert (
        "error[build/allow]" in ask(ouvrage, "build", "save", "x", "--allow", "serial", code=2).err
    )


def test_another_machine_is_compared_as_its_last_inventory_has_it(
    ouvrage: Home, machine: Machine
) -> None:
    ask(ouvrage, "build", "save", "b", "--node", *here(machine), "--unproven", "--why", "first")
    assert ask(ouvrage, "node", "compare", "node-1", "--build", "b").first.startswith("OK")
    said = ask(ouvrage, "node", "compare", "node-7", "--build", "b", code=3)
    assert "error[inventory/none]" in said.err


def test_a_patch_from_what_waits_to_the_facts(ouvrage: Home, machine: Machine) -> None:
    machine.packages["runc"] = ("install", "1.1.5-1")
    machine.write()
    file = ouvrage.path.parent / "apt.txt"
    file.write_text(APT)
    words = "--electricity 0.28/kWh --node node-1 --gpus 2 --model H100 --price 50000 --since 2026-01-05"
    ask(ouvrage, "init", *words.split())
    ask(
        ouvrage,
        "own",
        "lease",
        "spring",
        *[
            "--of",
            "node:node-1",
            "--count",
            "2",
            "--tenant",
            "ann",
            "--price",
            "0.45/h",
            "--from",
            "2026-05-01",
            "--to",
            "2095-01-01",
        ],
    )
    ask(ouvrage, "node", "inventory", *here(machine))

    pending = ask(
        ouvrage, "node", "patch", "pending", *here(machine), "--updates", str(file), code=1
    )
    assert pending.first == (
        "node-1: 1 security update waits, 2 in all; 2 of 4 packages that work runs on are not held"
    )
    asked = ("node", "patch", "plan", *here(machine), "--updates", str(file), "--why", "runc")
    window = ("--from", "2020-01-01", "--to", "2090-01-01")
    blocked = ask(ouvrage, *asked, *window, code=1)
    assert "1 in the way of the window" in blocked.first
    assert "agree with ann on an end of lease spring" in blocked.out
    assert "lease  spring  ann    2095-01-01" in blocked.out
    told = ask(ouvrage, *asked, *window, "--json", "--lift", "nvidia-driver", code=1).json
    assert told["will_change"] == ["runc", "nvidia-driver"]
    assert "error[patch/lift]" in ask(ouvrage, *asked, *window, "--lift", "vim", code=2).err
    assert (
        "error[patch/window]"
        in ask(ouvrage, *asked, "--from", "2090-01-01", "--to", "2020-01-01", code=2).err
    )
    assert kinds(ouvrage)[-2:] == ["node.patch_plan"] * 2, "written down before anything is touched"

    machine.packages |= {
        "runc": ("install", "1.1.15-1"),
        "bash": ("install", "5.3"),
        "nvidia-driver": ("hold", "550.144.03-1"),
    }
    machine.driver, machine.kernel = "550.144.03", "6.1.0-29-amd64"
    machine.modules = (("P0 A1", "D-1"),)
    machine.write()
    done = ask(ouvrage, "node", "patch", "done", *here(machine), "--json").json
    assert {row["what"]: row["planned"] for row in done["patched"]} == {
        "bash": False, "kernel": True, "nvidia driver": True, "nvidia-driver": True, "runc": True,
    }  # fmt: skip
    assert done["left"] == ["dimm BANK 0 P1 A1 is gone: Samsung M321R8GA0BB0 64 GiB, serial D-2"]
    assert ask(ouvrage, "node", "patch", "done", *here(machine)).first == (
        "node-1: 0 versions changed, 0 of them planned"
    )
    assert "is gone" in check(ouvrage, machine, 1).first, (
        "a part that changed is not accepted with it"
    )
    ask(ouvrage, "verify")


def test_hostile_files_are_refused_and_nothing_is_written(ouvrage: Home, machine: Machine) -> None:
    ask(ouvrage, "node", "inventory", *here(machine))
    kept = ouvrage.path / "agent/inventory/node-1.json"
    assert kept.stat().st_mode & 0o077 == 0 or kept.parent.stat().st_mode & 0o077 == 0
    for text in ("", "[]", "{}", '{"accepted": 1, "last": 2}', "\0" * 10):
        kept.write_text(text)
        said = ask(ouvrage, "node", "inventory", *here(machine), code=2)
        assert "error[inventory/kept]" in said.err
        assert check(ouvrage, machine, 3).err.startswith("error[inventory/kept]")
    refused = ask(ouvrage, "node", "inventory", "../x", "--root", str(machine.root), code=2)
    assert "error[node/name]" in refused.err
    table = ouvrage.path.parent / "topo.txt"
    table.write_text("nonsense")
    kept.unlink()
    words = ("node", "inventory", *here(machine), "--topology", str(table))
    assert "error[topology/unreadable]" in ask(ouvrage, *words, code=2).err
    assert not kept.exists()


def _without(row: dict[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in row.items() if key != name}


def certify(home: Home, parts: list[str], expires_us: int) -> None:
    """A certificate in the store, as a qualification leaves it."""
    source = (home.path / "source").read_text().strip()
    value = certificate("node-1", parts=tuple(parts), expires_us=expires_us)
    fact = fact_of(
        value, source=source, id=f"node.certificate/{expires_us}", subject="node:node-1", valid_from=1,
        valid_to=None, grade=Grade.MEASURED,
    )  # fmt: skip
    with open_store(home.path / "ouvrage.db") as store:
        store.append([fact], now_us=now_us(), own_source=source)


def test_a_build_is_saved_from_a_machine_whose_certificate_holds(
    ouvrage: Home, machine: Machine
) -> None:
    told = ask(ouvrage, "node", "inventory", *here(machine), "--json").json
    ids = list(part_ids(from_plain(Part, _without(row, "bought")) for row in told["parts"]))
    save = ("build", "save", "h100-2", "--node", *here(machine))
    certify(ouvrage, ids, 1)
    assert "error[build/unproven]" in ask(ouvrage, *save, code=2).err, "it has expired"
    certify(ouvrage, ids, 1 << 60)  # made with a clock that was ahead: none counts so long
    assert "error[build/unproven]" in ask(ouvrage, *save, code=2).err
    until = now_us() + 30 * 86_400_000_000
    certify(ouvrage, ids, until)
    assert "(proven by its certificate)" in ask(ouvrage, *save).first
    assert ask(ouvrage, "build", "list", "--json").json[0]["proven_by"].endswith(str(until))
    machine.modules = (("P0 A1", "D-1"), ("P1 A1", "D-9"))
    machine.write()
    assert "error[build/unproven]" in ask(ouvrage, *save, code=2).err, "a part of it is gone"

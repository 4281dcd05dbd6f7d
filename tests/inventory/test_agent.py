"""The agent and what a machine is made of: a fact for each boot and each change, and a warning that lasts until acceptance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ouvrage.agent.parts import Kept, keep, kept
from ouvrage.agent.probing.probes import BY_NAME
from ouvrage.model.health import NodeInventory
from tests.support.machine_tree import Machine
from tests.support.stopped_machine import StoppedMachine, stopped

HALF_HOUR = 1900


def inventories(machine: StoppedMachine) -> list[NodeInventory]:
    return [s.value for _, s in machine.facts if isinstance(s.value, NodeInventory)]


def only_this(machine: StoppedMachine) -> None:
    """No other probe has anything to look at."""
    for name in BY_NAME.keys() - {"inventory"}:
        machine.instead[name] = lambda _: {"absent": "not asked"}


def test_a_fact_for_each_boot_and_change_and_a_warning_until_accepted(tmp_path: Path) -> None:
    tree, state = tmp_path / "tree", tmp_path / "state"
    made = Machine(tree).write()
    with stopped(tree, state=state) as machine:
        only_this(machine)
        machine.instead["gpu"] = lambda _: {
            "values": {"gpus": [{"uuid": "GPU-0", "index": 0, "serial": "165", "pci": "00000000:01:00.0"}], "listed": 2}
        }  # fmt: skip
        machine.go(HALF_HOUR)
        (first,) = inventories(machine)
        serials = {p.slot: p.serial for p in first.parts if p.kind == "gpu"}
        assert serials == {"0000:01:00.0": "165", "0000:81:00.0": None}, "as the gpu probe was told"
        assert machine.counted("inventory") == "OK"

        machine.restart()
        machine.go(HALF_HOUR)
        assert len(inventories(machine)) == 1, "the same, by an agent that was ended: no news"

        made.modules = (("P0 A1", "D-1"),)
        made.write()
        machine.go(HALF_HOUR)
        assert len(inventories(machine)) == 2
        assert machine.counted("inventory") == "WARN"
        machine.go(HALF_HOUR)
        assert len(inventories(machine)) == 2
        assert [each.code for each in machine.verdicts("inventory")] == ["", "inventory-removed"]

        known = kept(state, "n1")
        assert known is not None
        keep(state, Kept(accepted=known.last, last=known.last))
        machine.go(HALF_HOUR)
        assert machine.counted("inventory") == "OK"

        made.boot = "5e1f0000-0000-4000-8000-000000000002"
        made.write()
        machine.restart(boot=made.boot)
        machine.go(HALF_HOUR)
        assert [each.boot for each in inventories(machine)][-1] == made.boot
        assert len(inventories(machine)) == 3


def test_a_file_that_is_none_of_ours_is_said_and_no_sick_machine(tmp_path: Path) -> None:
    Machine(tmp_path / "tree").write()
    file = tmp_path / "state/inventory/n1.json"
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with stopped(tmp_path / "tree", state=tmp_path / "state") as machine:
        only_this(machine)
        machine.go(HALF_HOUR)
        assert [each.code for each in machine.verdicts("inventory")] == ["inventory-kept"]
        assert machine.counted("inventory") == "WARN"
        assert len(inventories(machine)) == 1, "what it is made of is on record all the same"


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    one = NodeInventory(node="n1", boot="b", parts=())
    both = Kept(accepted=one, last=replace(one, boot="c"))
    keep(tmp_path, both)
    assert kept(tmp_path, "n1") == both
    assert kept(tmp_path, "n2") is None

"""Rungs climbed from inside a machine: what is stopped first, who is never killed, what proves a reboot, what is done once."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.adapters.machine_commands import MachineCommands, nvlinks
from ouvrage.adapters.machine_port import Holder, NotDone
from ouvrage.adapters.machine_twin import MachineTwin
from ouvrage.agent.probing.alone import look, record_in
from ouvrage.agent.probing.climbing import INTENT, Rung, climb, resumed
from ouvrage.agent.probing.deliver import deliver, into_store
from ouvrage.agent.probing.repair import Duties, Repair
from ouvrage.agent.probing.repairs import Repairs
from ouvrage.agent.probing.spool import Spool
from ouvrage.agent.probing.verifying import Verify, epoch_in, hands_off, keep_hands_off, taken
from ouvrage.base.grades import Grade
from ouvrage.health.owner import Owner
from ouvrage.ledger.stated import Stated
from ouvrage.model.health import Verdict
from ouvrage.store.store import open_store

GPU, PEER = "GPU-aaaa", "GPU-bbbb"
RESET = Rung(device=GPU, rung="gpu_reset", epoch=3)


def climbed(twin: MachineTwin, rung: Rung = RESET, at: Path | None = None) -> tuple[str, str]:
    quiet: list[bool] = []
    with tempfile.TemporaryDirectory() as else_at:
        found = climb(rung, twin, at or Path(else_at), quiet.append, lambda _: None)
    assert quiet in ([], [True, False])
    return found.outcome, found.why


def test_a_reset_stops_what_holds_the_gpu_and_starts_it_again() -> None:
    holders = [Holder(pid=7, name="nvidia-persistenced"), Holder(pid=8, name="nvidia-dcgm")]
    twin = MachineTwin(
        held={GPU: holders}, services={"nvidia-persistenced": True, "nvidia-dcgm": True}
    )
    assert climbed(twin) == ("done", f"reset {GPU}")
    assert twin.done == [
        "stop nvidia-persistenced", "stop nvidia-dcgm", f"reset {GPU}", "start nvidia-dcgm",
        "start nvidia-persistenced",
    ]  # fmt: skip


def test_the_whole_domain_is_reset_in_one_go_with_its_fabric_manager_stopped() -> None:
    twin = MachineTwin(domain={GPU: [PEER]}, services={"nvidia-fabricmanager": True})
    rung = Rung(device=GPU, rung="gpu_reset", epoch=3, beside=(PEER,))
    assert climbed(twin, rung)[0] == "done"
    assert twin.done == [
        "stop nvidia-fabricmanager",
        f"reset {GPU} {PEER}",
        "start nvidia-fabricmanager",
    ]


def test_a_gpu_that_is_not_held_back_is_not_reset_along() -> None:
    twin = MachineTwin(domain={GPU: [PEER]}, services={"nvidia-dcgm": True})
    words = f"a reset takes {PEER} along, which may get new work"
    assert climbed(twin) == ("refused", words)
    assert twin.done == []


@pytest.mark.parametrize("cut", ["stop_service", "holders", "reset"])
def test_services_stopped_by_a_reset_that_was_killed_are_started_again(
    tmp_path: Path, cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = {"nvidia-persistenced": True, "nvidia-dcgm": True, "gpud": False}
    twin = MachineTwin(services=dict(running))

    class Killed(BaseException):
        pass

    def kill(*_: Any) -> Any:
        twin.services["nvidia-dcgm"] = False
        raise Killed

    monkeypatch.setattr("ouvrage.agent.probing.climbing._start_again", lambda *_: kill())
    monkeypatch.setattr(MachineTwin, cut, kill)
    with pytest.raises(Killed):
        repairing(tmp_path, twin, RESET).once()
    monkeypatch.undo()
    repairing(tmp_path, twin).once()
    assert twin.services == running
    assert "start gpud" not in twin.done
    twin.done.clear()
    repairing(tmp_path, twin).once()
    assert twin.done == []


def test_after_a_boot_nobody_starts_what_it_starts_itself(tmp_path: Path) -> None:
    (tmp_path / "stopped.json").write_text('{"boot": "boot-0", "services": ["nvidia-dcgm"]}')
    twin = MachineTwin()
    repairing(tmp_path, twin).once()
    assert twin.done == []
    (tmp_path / "stopped.json").write_text('{"boot": "boot-1", "services": ["sshd", "../x"]}')
    repairing(tmp_path, twin).once()
    assert twin.done == []


def test_whoever_else_holds_it_is_named_and_nothing_is_reset() -> None:
    twin = MachineTwin(
        held={GPU: [Holder(pid=4242, name="python")]}, services={"nvidia-dcgm": True}
    )
    assert climbed(twin) == ("refused", "held open by python (pid 4242)")
    assert twin.done == ["stop nvidia-dcgm", "start nvidia-dcgm"]


@pytest.mark.parametrize("call", ["tied", "stop_service", "holders", "reset", "start_service"])
def test_whatever_does_not_answer_fails_the_rung(call: str) -> None:
    twin = MachineTwin(refuses={call: "it hangs"}, services={"nvidia-dcgm": True})
    assert climbed(twin) == ("failed", "it hangs")


def test_a_reboot_is_intended_first_and_proved_by_another_boot(tmp_path: Path) -> None:
    twin = MachineTwin()
    rung = Rung(device=None, rung="reboot", epoch=5)
    assert climbed(twin, rung, tmp_path)[0] == "waiting"
    assert twin.done == ["reboot"]
    assert resumed(tmp_path, twin) is None
    twin.boot_id = "boot-2"
    found = resumed(tmp_path, twin)
    assert found is not None
    assert (found[0], found[1].outcome) == (rung, "done")
    assert found[1].why == "boot boot-1 is over, boot-2 runs"


def test_a_reboot_that_is_refused_leaves_no_intent(tmp_path: Path) -> None:
    twin = MachineTwin(refuses={"reboot": "Access denied"})
    assert climbed(twin, Rung(device=None, rung="reboot", epoch=5), tmp_path)[0] == "failed"
    assert not (tmp_path / INTENT).exists()


def test_power_is_not_taken_away_from_inside() -> None:
    assert climbed(MachineTwin(), Rung(device=None, rung="power_cycle", epoch=1))[0] == "refused"


def repairing(state: Path, twin: MachineTwin, *rungs: Rung, verify: Any = ()) -> Repair:
    duties = Duties(epoch=9, rungs=rungs, verify=tuple(verify))
    return Repair(state=state, node="n1", machine=twin, duties=lambda: duties, pause=lambda _: None)


def said(state: Path) -> list[str]:
    waiting = Spool(state).waiting()
    return [] if waiting is None else [fact.id.split("/")[4] for fact in waiting.facts]


def test_a_rung_is_begun_once_however_often_it_is_ordered(tmp_path: Path) -> None:
    twin = MachineTwin()
    repair = repairing(tmp_path, twin, RESET)
    for _ in range(3):
        repair.once()
    assert twin.done == [f"reset {GPU}"]
    assert said(tmp_path) == ["waiting", "done"]
    assert taken(tmp_path) == [Verify(device=GPU)]
    assert epoch_in(tmp_path) == 9


def test_the_next_start_tells_how_a_reboot_ended_and_asks_to_look_anew(tmp_path: Path) -> None:
    twin = MachineTwin()
    repair = repairing(tmp_path, twin, Rung(device=None, rung="reboot", epoch=5))
    repair.once()
    assert not repair.resume()
    repair.once()
    assert twin.done == ["reboot"]
    twin.boot_id = "boot-2"
    assert repair.resume()
    assert not repair.resume()
    assert said(tmp_path) == ["waiting", "waiting", "done"]
    assert taken(tmp_path) == [Verify(device=None)]


def test_our_own_probes_let_go_for_some_minutes_at_most(tmp_path: Path) -> None:
    from ouvrage.adapters.clock import monotonic_us

    now = monotonic_us()
    keep_hands_off(tmp_path, True)
    assert hands_off(tmp_path, now)
    assert not hands_off(tmp_path, now + 301_000_000)
    assert not hands_off(tmp_path, now - 600_000_000)  # said in a boot that is over
    keep_hands_off(tmp_path, False)
    assert not hands_off(tmp_path, now)


def test_it_is_started_often_in_trouble_once_after_it_and_seldom_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[int] = []

    class Ended:
        def __init__(self, *_: Any, **__: Any) -> None:
            started.append(now)

        def poll(self) -> int:
            return 0

    monkeypatch.setattr("ouvrage.agent.probing.passing.subprocess.Popen", Ended)
    repairs, s = Repairs(["it"]), 1_000_000
    for now in range(0, 100 * s, s):
        repairs.look(now, 20 * s <= now < 60 * s)
    assert [at // s for at in started] == [0, 20, 35, 50, 60, 61]
    Repairs([]).look(0, True)
    assert len(started) == 6


def verdict(verdict: str, since: int) -> Stated:
    value = Verdict(
        node="n1", device=GPU, check="gpu", verdict=verdict, code="xid-95", evidence=(),
        action="none" if verdict == "OK" else "gpu_reset", since_us=since, boot="boot-1", epoch=0,
        shadow=False,
    )  # fmt: skip
    return Stated(
        natural=f"verdict/{since}", value=value, subject="node:n1", valid_from=now_us(),
        valid_to=None, grade=Grade.MEASURED,
    )  # fmt: skip


def test_a_machine_alone_fences_repairs_verifies_and_frees_itself(tmp_path: Path) -> None:
    spool, state = Spool(tmp_path / "agent"), tmp_path / "agent"
    twin = MachineTwin(held={GPU: [Holder(pid=1, name="python")]})
    owner = Owner(turned_on=frozenset({"gpu_reset"}))
    ids = iter(f"{n:032x}" for n in range(1000))

    def once() -> Duties:
        deliver(spool, into_store(tmp_path))
        with open_store(tmp_path / "ouvrage.db") as store:
            found, record = look(
                store, "d" * 32, "n1", owner, twin, now_us(), lambda: next(ids), observer=False
            )
            verify = [p[1] for p, s in record.standings.items() if s.state == "verifying"]
        rungs = tuple(Rung(device=o.place[1], rung=o.rung, epoch=o.epoch) for o in found.ordered)
        return Duties(epoch=record.machine("n1").moves, rungs=rungs, verify=tuple(verify))

    repair = Repair(state=state, node="n1", machine=twin, duties=once, pause=lambda _: None)
    spool.add([verdict("CRITICAL", 10)])
    repair.once()
    with open_store(tmp_path / "ouvrage.db") as store:
        assert record_in(store).fences().holders("n1", GPU) == {"automation"}
        assert record_in(store).standing(("n1", GPU)).state == "draining"
    twin.held = {}
    repair.once()
    assert twin.done == [f"reset {GPU}"]
    spool.add([verdict("OK", 20)])
    repair.once()
    with open_store(tmp_path / "ouvrage.db") as store:
        record = record_in(store)
        assert (record.standing(("n1", GPU)).state, record.fences().free("n1", GPU)) == (
            "healthy", True
        )  # fmt: skip
        assert [t.remedy.verified for t in record.tries["n1", GPU]] == [True]


def test_on_a_machine_that_others_run_nothing_is_touched(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "agent")
    spool.add([verdict("CRITICAL", 10)])
    deliver(spool, into_store(tmp_path))
    with open_store(tmp_path / "ouvrage.db") as store:
        found, _ = look(
            store, "d" * 32, "n1", Owner(turned_on=frozenset({"gpu_reset"})), MachineTwin(),
            now_us(), lambda: "e" * 32, observer=True,
        )  # fmt: skip
    assert found.ordered == ()
    assert "run by others" in found.pages[0].words


# The machine's own commands, against programs that stand in for them in a directory of their own.


def program(where: Path, name: str, text: str) -> None:
    path = where / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MachineCommands:
    for number, uuid in enumerate((GPU, PEER)):
        at = tmp_path / f"proc/driver/nvidia/gpus/0000:0{number}:00.0"
        at.mkdir(parents=True)
        (at / "information").write_text(f"GPU UUID: \t {uuid}\nDevice Minor: \t {number}\n")
    for pid, words, file in (
        (10, b"python\0train.py", "/dev/nvidia0"),
        (11, b"python\0-m\0ouvrage.agent.probing.child", "/dev/nvidia0"),
        (12, b"sh", "/dev/null"),
    ):
        (tmp_path / f"proc/{pid}/fd").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/comm").write_text("python\n")
        (tmp_path / f"proc/{pid}/cmdline").write_bytes(words)
        os.symlink(file, tmp_path / f"proc/{pid}/fd/3")
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name in ("nvidia-smi", "systemctl", "dcgmi"):  # never the real ones
        program(programs, name, f'echo "$0 $@" >> {tmp_path}/called; exit 0')
    return MachineCommands(str(tmp_path))


def called(tmp_path: Path) -> list[str]:
    lines = (tmp_path / "called").read_text().splitlines()
    return [line.replace(f"{tmp_path}/bin/", "") for line in lines]


def test_who_has_a_gpu_open_is_told_by_proc(commands: MachineCommands) -> None:
    assert commands.holders(GPU) == [
        Holder(pid=10, name="python"), Holder(pid=11, name="python", ours=True)
    ]  # fmt: skip
    assert commands.holders(PEER) == []
    with pytest.raises(NotDone, match="no device file"):
        commands.holders("GPU-cccc")


def test_each_command_is_called_as_it_is_documented(
    commands: MachineCommands, tmp_path: Path
) -> None:
    assert commands.stop_service("nvidia-dcgm")
    commands.reset([GPU, PEER])
    commands.start_service("nvidia-dcgm")
    commands.diagnose(PEER)
    commands.reboot()
    assert called(tmp_path) == [
        "systemctl is-active --quiet nvidia-dcgm",
        "systemctl stop nvidia-dcgm",
        f"nvidia-smi --gpu-reset -i {GPU},{PEER}",
        "systemctl start nvidia-dcgm",
        "dcgmi diag -r 3 -i 1",
        "systemctl reboot",
    ]


def test_a_command_that_fails_says_why(commands: MachineCommands, tmp_path: Path) -> None:
    program(tmp_path / "bin", "nvidia-smi", "echo 'GPU is in use'; exit 5")
    with pytest.raises(NotDone, match=r"--gpu-reset -i GPU-aaaa: exit 5: GPU is in use"):
        commands.reset([GPU])
    (tmp_path / "bin/dcgmi").unlink()
    with pytest.raises(NotDone, match="exit 127: dcgmi"):
        commands.diagnose(None)


def test_a_command_that_hangs_is_let_go(tmp_path: Path) -> None:
    from ouvrage.adapters.machine_commands import call

    program(tmp_path, "hangs", "exec sleep 5")
    assert call([str(tmp_path / "hangs")], 0.05).code is None


def test_a_service_that_does_not_run_is_left_alone(
    commands: MachineCommands, tmp_path: Path
) -> None:
    program(tmp_path / "bin", "systemctl", "exit 3")
    assert not commands.stop_service("nvidia-dcgm")


def test_nvlinks_are_read_from_the_matrix() -> None:
    text = (
        "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\n"
        "GPU0\t X \tNV18\tSYS\tPIX\t0-31\nGPU1\tNV18\t X \tSYS\tSYS\t0-31\n"
        "GPU2\tSYS\tSYS\t X \tSYS\t32-63\nNIC0\tPIX\tSYS\tSYS\t X \n\nLegend:\n"
    )
    assert nvlinks(text) == {0: [1], 1: [0], 2: []}
    assert nvlinks("") == {}

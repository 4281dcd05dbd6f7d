"""One contract for everything that switches a machine: the twin, sushy's BMC, OpenIPMI's BMC, three plugs and their second relay, a rack's outlet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ouvrage.adapters.power_order import Pace, Switch
from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.power_twin import PowerTwin
from ouvrage.adapters.remote_config import power_port_of, remote_of
from ouvrage.model.power import OFF, ON, RESTORES
from tests.remote import outside
from tests.remote.fake_bmc import PDU, SYSTEM, Bmc

PACE = Pace(change_s=20, look_s=0.05, off_s=0, soft_s=20)
PLUGS = {
    "shelly1": ("gen1", 0), "shelly2": ("gen2", 0), "tasmota": ("tasmota", 0),
    "shelly1-second": ("gen1", 1), "shelly2-second": ("gen2", 1), "tasmota-second": ("tasmota", 1),
}  # fmt: skip
CUTS_ONLY = (*PLUGS, "rack")


@pytest.fixture(params=["twin", "redfish", "ipmi", *CUTS_ONLY])
def made(
    request: pytest.FixtureRequest, tmp_path: Path, secret: Path
) -> Iterator[tuple[str, PowerPort]]:
    name: str = request.param
    with ExitStack() as stack:
        if name == "twin":
            yield name, PowerTwin(looks=2)
            return
        if name == "redfish":
            address = request.getfixturevalue("bmc_redfish")
            kind, more = "redfish", f'system = "{outside.system_id("n1")}"\n'
        elif name == "ipmi":
            address, kind, more = request.getfixturevalue("bmc_ipmi"), "ipmi", "cipher = 3\n"
        elif name == "rack":
            bmc = Bmc()
            address, kind, more = (
                stack.enter_context(outside.serving(bmc)),
                "redfish",
                'outlet = "A2"\n',
            )
            stack.callback(lambda: _others_stay_on(bmc))
        else:
            form, outlet = PLUGS[name]
            made = outside.Plug(form, password=outside.PASSWORD, outlet=outlet)
            address, more = stack.enter_context(outside.plug(made)), f"outlet = {outlet}\n"
            kind = "tasmota" if form == "tasmota" else "shelly"
        (tmp_path / "remote.toml").write_text(
            f'[node.n1]\nkind = "{kind}"\naddress = "{address}"\nuser = "{outside.USER}"\n'
            f'password = "file:{secret}"\n{more}'
        )
        yield name, power_port_of(remote_of(tmp_path, "n1"))


def _others_stay_on(bmc: Bmc) -> None:
    told = (bmc.tree[f"{PDU}/Outlets/A1"]["PowerState"], bmc.tree[SYSTEM]["PowerState"])
    assert told == ("On", "On")


def test_off_and_on_are_seen(made: tuple[str, PowerPort]) -> None:
    _, port = made
    switch = Switch(port, PACE)
    switch.carry_out("on", hard=True)
    off = switch.carry_out("off", hard=True)
    assert (off.outcome, off.before, off.after, port.state()) == ("done", ON, OFF, OFF)
    again = switch.carry_out("off", hard=True)
    assert (again.outcome, again.seen) == ("nothing to do", (OFF,))
    on = switch.carry_out("on", hard=True)
    assert (on.outcome, on.before, on.after, port.state()) == ("done", OFF, ON, ON)


def test_a_cycle_is_seen_off_and_then_on(made: tuple[str, PowerPort]) -> None:
    _, port = made
    switch = Switch(port, PACE)
    switch.carry_out("on", hard=True)
    done = switch.carry_out("cycle", hard=True)
    assert (done.outcome, done.seen) == ("done", (ON, OFF, ON))


def test_a_soft_end_is_ordered_or_said_to_be_impossible(made: tuple[str, PowerPort]) -> None:
    name, port = made
    switch = Switch(port, PACE)
    switch.carry_out("on", hard=True)
    done = switch.carry_out("off", hard=False)
    if name in CUTS_ONLY:
        assert done.outcome == "failed"
        assert "only cut" in done.why
        assert port.state() == ON
    else:
        assert (done.outcome, done.after) == ("done", OFF), done.why
        switch.carry_out("on", hard=True)


def test_what_is_told_is_in_form_and_what_is_not_known_is_not_invented(
    made: tuple[str, PowerPort],
) -> None:
    name, port = made
    Switch(port, PACE).carry_out("on", hard=True)
    assert port.restore_policy() in (*RESTORES, None)
    told = port.sensors()
    assert all(each.verdict in ("OK", "WARN", "CRITICAL", "UNKNOWN") and each.name for each in told)
    drawn = port.power_w()
    if name in (*CUTS_ONLY, "twin"):
        assert drawn is not None
        assert drawn.unit == "W"
        assert 300 < (drawn.value or 0) < 330
    else:
        assert drawn is None


def test_a_log_goes_on_where_it_was_left(made: tuple[str, PowerPort]) -> None:
    _, port = made
    try:
        page = port.events()
    except PowerFault as fault:
        assert fault.kind == "unsupported"  # noqa: PT017 - either it keeps a log or it says so
        return
    rest = port.events(page.cursor)
    assert (rest.entries, rest.gap) == ((), False)


def test_a_limit_holds_or_is_refused(made: tuple[str, PowerPort]) -> None:
    name, port = made
    if name == "twin":
        return  # made without a limit: test_order has one with
    with pytest.raises(PowerFault) as told:
        port.power_limit()
    assert told.value.kind == "unsupported"

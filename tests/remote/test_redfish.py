"""Redfish beyond switching: sensors, limits, logs, and a service that is slow, busy, elsewhere or not itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouvrage.adapters import redfish_form as form
from ouvrage.adapters.power_order import set_limit
from ouvrage.adapters.power_port import PowerFault
from ouvrage.adapters.power_turn import asked
from ouvrage.adapters.redfish import Redfish, Where
from ouvrage.adapters.remote_config import power_port_of, remote_of
from tests.remote import outside
from tests.remote.fake_bmc import CHASSIS, ROOT, SYSTEM, Bmc, link, sample

POWER, LOG = f"{CHASSIS}/Power", f"{SYSTEM}/LogServices/SEL/Entries"


@pytest.fixture
def bmc() -> Bmc:
    return Bmc()


@pytest.fixture
def address(bmc: Bmc) -> Iterator[str]:
    with outside.serving(bmc) as url:
        yield url


@pytest.fixture
def port(address: str, tmp_path: Path) -> Redfish:
    (tmp_path / "remote.toml").write_text(
        f'[node.n1]\nkind = "redfish"\naddress = "{address}"\ntimeout_s = 5\n'
    )
    made = power_port_of(remote_of(tmp_path, "n1"))
    assert isinstance(made, Redfish)
    return made


def test_sensors_are_read_from_power_and_thermal_and_what_is_not_fitted_is_left_out(
    port: Redfish,
) -> None:
    told = {each.name: (str(each.value), each.unit, each.verdict) for each in port.sensors()}
    assert told == {
        "Inlet": ("24.5", "degC", "OK"),
        "Exhaust": (
            "71",
            "degC",
            "WARN",
        ),  # it says nothing of its health, and is above the bound that it names
        "Fan 1": ("5400", "rpm", "OK"),
        "PSU 1": ("790", "W", "OK"),
        "PSU 2": ("0", "W", "CRITICAL"),
        "12V": ("12.18", "V", "OK"),
    }
    drawn = port.power_w()
    assert drawn is not None
    assert drawn.value == 812
    assert port.restore_policy() == "off"


def test_single_sensors_are_read_where_there_is_no_older_form(bmc: Bmc, port: Redfish) -> None:
    one = f"{CHASSIS}/Sensors/cpu"
    bmc.tree[CHASSIS] = {
        "Sensors": link(f"{CHASSIS}/Sensors"),
        "EnvironmentMetrics": link(f"{CHASSIS}/EnvironmentMetrics"),
    }
    bmc.tree[f"{CHASSIS}/Sensors"] = {
        "Members": [link(one), {"Name": "Fan", "Reading": 40, "ReadingUnits": "%", **link("/x")}]
    }
    bmc.tree[one] = {
        "Name": "CPU",
        "Reading": 55,
        "ReadingUnits": "Cel",
        "Status": {"Health": "OK", "State": "Enabled"},
    }
    bmc.tree[f"{CHASSIS}/EnvironmentMetrics"] = {
        "PowerWatts": {"Reading": 640}, "PowerLimitWatts": {"SetPoint": 900, "ControlMode": "Automatic", "AllowableMin": 400, "AllowableMax": 1200},
    }  # fmt: skip
    assert [(e.name, e.unit, e.verdict) for e in port.sensors()] == [
        ("CPU", "degC", "OK"),
        ("Fan", "%", "OK"),
    ]
    drawn = port.power_w()
    assert drawn is not None
    assert drawn.value == 640
    assert dataclasses.asdict(port.power_limit()) == {"watts": 900, "least": 400, "most": 1200}
    set_limit(port, 700)
    set_limit(port, None)
    assert bmc.bodies == [
        {"PowerLimitWatts": {"SetPoint": 700, "ControlMode": "Automatic"}}, {"PowerLimitWatts": {"ControlMode": "Disabled"}},
    ]  # fmt: skip
    with pytest.raises(PowerFault, match="outside 400 to 1200"):
        port.set_power_limit(399)


def test_a_limit_is_set_with_the_tag_that_was_read_and_read_back(bmc: Bmc, port: Redfish) -> None:
    bmc.etag = '"7"'
    assert port.power_limit().watts is None
    set_limit(port, 1500)
    assert bmc.bodies == [{"PowerControl": [{"PowerLimit": {"LimitInWatts": 1500}}]}]
    assert port.power_limit().watts == 1500
    set_limit(port, None)
    assert port.power_limit().watts is None
    bmc.deaf = True
    with pytest.raises(PowerFault, match="reads no limit after it was told 900 W"):
        set_limit(port, 900)


def test_the_log_is_hardwares_and_goes_on_after_a_cursor(bmc: Bmc, port: Redfish) -> None:
    page = port.events()
    assert [each.id for each in page.entries] == ["1", "2"]
    assert [each.verdict for each in page.entries] == ["OK", "CRITICAL"]
    assert page.used_percent == 50
    entries = bmc.tree[LOG]["Members"]
    entries.append(
        {"Id": "3", "Created": "2026-11-30T12:00:00Z", "Severity": "Warning", "Message": "hot"}
    )
    more = port.events(page.cursor)
    assert ([each.id for each in more.entries], more.gap) == (["3"], False)
    # It was cleared, and counts from 1 again.
    bmc.tree[LOG]["Members"] = [
        {"Id": "1", "Created": "2026-11-30T13:00:00Z", "Severity": "OK", "Message": "Log cleared"}
    ]
    cleared = port.events(more.cursor)
    assert ([each.id for each in cleared.entries], cleared.gap) == (["1"], True)
    bmc.tree[LOG]["Members"] = []
    empty = port.events(cleared.cursor)
    assert (empty.entries, empty.cursor, empty.gap) == ((), cleared.cursor, True)


def test_a_log_in_several_pages_is_read_whole(bmc: Bmc, port: Redfish) -> None:
    bmc.tree[f"{LOG}?$skip=2"] = {
        "Members": [{"Id": "3", "Created": "2026-11-30T12:00:00Z", "Severity": "OK"}]
    }
    bmc.tree[LOG]["Members@odata.nextLink"] = f"{LOG}?$skip=2"
    assert [each.id for each in port.events().entries] == ["1", "2", "3"]
    bmc.tree[LOG]["Members@odata.nextLink"] = LOG  # a page that leads to itself
    assert [each.id for each in port.events().entries] == ["1", "2"]


@pytest.mark.parametrize(
    "elsewhere", ["http://127.0.0.1:1/redfish/v1/", "https://bmc.example/redfish/v1/"]
)
def test_a_redirect_is_not_followed(bmc: Bmc, port: Redfish, elsewhere: str) -> None:
    bmc.broken["GET", ROOT] = [(302, {"Location": elsewhere}, {})]
    with pytest.raises(PowerFault, match="not followed") as told:
        port.state()
    assert told.value.kind == "garbled"


def test_a_link_to_another_host_is_not_followed(bmc: Bmc, port: Redfish) -> None:
    with outside.serving(seen := Bmc()) as other:
        bmc.tree[ROOT]["Systems"] = link(f"{other}{ROOT}Systems")
        with pytest.raises(PowerFault, match="another host"):
            port.state()
        bmc.tree[ROOT]["Systems"] = link(f"{ROOT}Systems")
        bmc.tree[LOG]["Members@odata.nextLink"] = f"{other}{LOG}"
        with pytest.raises(PowerFault, match="another host"):
            port.events()
    assert seen.asked == []


def test_a_busy_service_is_asked_again_later_and_later_and_an_order_is_not(
    bmc: Bmc, port: Redfish
) -> None:
    pauses: list[float] = []
    busy = (503, {}, {"error": {"message": "later"}})
    bmc.broken["GET", SYSTEM] = [busy, busy, (200, {}, bmc.tree[SYSTEM])]
    assert asked(port.state, pause=pauses.append) == "on"
    assert pauses == [1, 2]
    bmc.broken = {("POST", f"{SYSTEM}/Actions/ComputerSystem.Reset"): [busy]}
    bmc.asked.clear()
    with pytest.raises(PowerFault, match="later") as told:
        port.turn_off()
    assert told.value.kind == "busy"
    assert sum(1 for method, _ in bmc.asked if method == "POST") == 1


def test_a_maker_s_own_word_for_not_yet_is_known_from_the_table(bmc: Bmc, port: Redfish) -> None:
    words = {"error": {"code": "IDRAC.2.8.SYS518", "message": "SYS518: iDRAC is not ready"}}
    bmc.broken["POST", f"{SYSTEM}/Actions/ComputerSystem.Reset"] = [(400, {}, words)]
    with pytest.raises(PowerFault) as told:
        port.turn_off()
    assert told.value.kind == "failed"
    bmc.tree[SYSTEM]["Manufacturer"] = "Dell Inc."
    with pytest.raises(PowerFault) as told:
        port.turn_off()
    assert told.value.kind == "busy"
    assert "idrac-not-ready" in port.quirk.names


def test_a_restore_policy_under_a_makers_name_is_known_from_the_table(
    bmc: Bmc, port: Redfish
) -> None:
    del bmc.tree[SYSTEM]["PowerRestorePolicy"]
    bmc.tree[POWER]["Oem"] = {"Lenovo": {"PowerRestorePolicy": "Restore"}}
    assert port.restore_policy() is None
    bmc.tree[SYSTEM]["Manufacturer"] = "Lenovo"
    assert port.restore_policy() == "last"


@pytest.mark.parametrize(
    "answer", [b"<html>", b"[]", b"null", b'{"Id": 3}', b'{"Members": [7]}', b"[" * 9000]
)
@pytest.mark.parametrize("where", [ROOT, f"{ROOT}Systems", SYSTEM])
def test_what_is_no_redfish_is_a_fault_and_never_a_state(
    bmc: Bmc, port: Redfish, answer: bytes, where: str
) -> None:
    bmc.broken["GET", where] = [(200, {}, answer)]
    try:
        assert port.state() == "unknown"
    except PowerFault as fault:
        assert fault.kind in ("garbled", "unsupported")  # noqa: PT017 - either is right, a state is not


@pytest.mark.parametrize(
    "answer", [b"[]", b"null", b'{"Temperatures": 3}', b'{"Temperatures": [null, {"Name": []}]}']
)
def test_odd_sensors_are_none(bmc: Bmc, port: Redfish, answer: bytes) -> None:
    bmc.broken["GET", f"{CHASSIS}/Thermal"] = [(200, {}, answer)]
    bmc.broken["GET", POWER] = [(200, {}, answer)]
    assert port.sensors() == []


def test_an_answer_without_end_is_too_long(bmc: Bmc, port: Redfish) -> None:
    bmc.broken["GET", ROOT] = [(200, {}, b" " * (5 << 20))]
    with pytest.raises(PowerFault, match="longer than 4 MiB"):
        port.state()


def test_one_that_does_not_answer_is_silent(tmp_path: Path) -> None:
    nobody = Redfish(_where(f"http://127.0.0.1:{outside.free_port()}"), lambda *_: port_quirk())
    with pytest.raises(PowerFault) as told:
        nobody.state()
    assert told.value.kind == "silent"
    import socket

    with socket.create_server(("127.0.0.1", 0)) as mute:  # it takes the connection and says nothing
        slow = Redfish(
            _where(f"http://127.0.0.1:{mute.getsockname()[1]}", 0.3), lambda *_: port_quirk()
        )
        with pytest.raises(PowerFault) as told:
            slow.state()
    assert told.value.kind == "silent"


def port_quirk() -> object:
    from ouvrage.adapters.power_quirks import Quirk

    return Quirk()


def _where(address: str, timeout_s: float = 5) -> Where:
    return Where(address=address, user=None, password=None, timeout_s=timeout_s)


def test_the_public_samples_are_read() -> None:
    power, system = sample("power"), sample("system")
    if power is None:
        pytest.skip("OUVRAGE_DATA is not set")
    told = form.of_power(power)
    assert [(e.name, str(e.value), e.verdict) for e in told] == [
        ("Power Supply 0", "650", "OK"), ("Power Supply 1", "635", "OK"), ("Power Supply Redundancy", "None", "OK"),
    ]  # fmt: skip
    assert form.limit_of(power) is None
    assert form.draw_of(power) is None
    assert {e.unit for e in form.of_thermal(sample("thermal"))} == {"degC", "rpm"}
    assert form.RESTORES.get(str(system.get("PowerRestorePolicy"))) is None

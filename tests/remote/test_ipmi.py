"""ipmitool's words: every state, sensor and event in a form of ours, and its complaints told apart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ouvrage.adapters import ipmi_text as text
from ouvrage.adapters.ipmi import Bmc, Ipmi, run
from ouvrage.adapters.power_port import PowerFault
from ouvrage.base.time import utc_us
from tests.remote import outside

# Written for these tests in the form that ipmitool 1.8.19 prints; no machine's own output.
SENSORS = """\
CPU1 Temp        | 01h | ok  |  3.1 | 48 degrees C
Inlet Temp       | 05h | nc  | 64.1 | 41 degrees C
GPU3 Temp        | 23h | cr  | 11.3 | 97 degrees C
FAN1             | 41h | ok  | 29.1 | 5300 RPM
FAN2             | 42h | ns  | 29.2 | No Reading
PS1 Status       | c8h | ok  | 10.1 | Presence detected
PS2 Status       | c9h | ok  | 10.2 | Presence detected, Failure detected
12V              | 30h | ok  |  7.1 | 12.19 Volts
Total_Power      | 55h | ok  | 21.1 | 1240 Watts
garbage
"""
EVENTS = """\
1a,11/30/2026,10:00:00,Power Supply #0xc9,Power Supply AC lost,Asserted
1b,11/30/2026,10:02:00,Power Supply #0xc9,Power Supply AC lost,Deasserted
1c,11/30/26,11:00:00 UTC,Memory #0x02,Correctable ECC,Asserted
1d,11/30/2026,11:30:00,Temperature #0x05,Upper Non-critical going high,Asserted,Reading 41 > Threshold 40 degrees C
1e,11/30/2026,11:31:00,Temperature #0x23,Upper Critical going high,Asserted
1f, Pre-Init ,0000035998,Memory #0x02,Uncorrectable ECC,Asserted
20,11/30/2026,12:00:00,System ACPI Power State #0x01,S0/G0: working,Asserted
SEL has no entries
"""


def test_sensors() -> None:
    told = {
        each.name: (str(each.value), each.unit, each.verdict) for each in text.readings_in(SENSORS)
    }
    assert told == {
        "CPU1 Temp": ("48", "degC", "OK"),
        "Inlet Temp": ("41", "degC", "WARN"),
        "GPU3 Temp": ("97", "degC", "CRITICAL"),
        "FAN1": ("5300", "rpm", "OK"),
        "PS1 Status": ("None", "Presence detected", "OK"),
        "PS2 Status": ("None", "Presence detected, Failure detected", "CRITICAL"),
        "12V": ("12.19", "V", "OK"),
        "Total_Power": ("1240", "W", "OK"),
    }


def test_events() -> None:
    told = text.entries_in(EVENTS)
    assert [(each.id, each.verdict) for each in told] == [
        ("1a", "CRITICAL"), ("1b", "OK"), ("1c", "WARN"), ("1d", "WARN"), ("1e", "CRITICAL"), ("1f", "CRITICAL"), ("20", "OK"),
    ]  # fmt: skip
    assert told[0].at_us == utc_us("2026-11-30T10:00:00Z")
    assert told[2].at_us == utc_us("2026-11-30T11:00:00Z")
    assert told[5].at_us is None
    assert (
        text.entries_in("1,01/01/1970,00:00:07,a,b,c")[0].at_us is None
    )  # a clock that was never set


def test_states_and_policies() -> None:
    status = "System Power         : off\nPower Restore Policy : previous\nMain Power Fault     : true\nCooling/Fan Fault : false\n"
    assert text.state_in(status) == "off"
    assert text.state_in("") == "unknown"
    assert [(each.name, each.verdict) for each in text.chassis_faults(status)] == [
        ("Main Power Fault", "CRITICAL"), ("Cooling/Fan Fault", "OK"),
    ]  # fmt: skip
    assert text.RESTORES[text.fields(status)["Power Restore Policy"]] == "last"


def test_limits_and_draw() -> None:
    limit = "    Current Limit State: Power Limit Active\n    Power Limit:         800 Watts\n"
    told = text.limit_in(limit)
    assert told is not None
    assert told.watts == 800
    none = text.limit_in(limit.replace("Power Limit Active", "No Active Power Limit"))
    assert none is not None
    assert none.watts is None
    assert text.limit_in("nonsense") is None
    drawn = "    Instantaneous power reading:                   512 Watts\n    Power reading state is:                   activated\n"
    read = text.draw_in(drawn)
    assert read is not None
    assert read.value == 512
    assert text.draw_in(drawn.replace("activated", "deactivated")) is None
    assert text.draw_in(drawn.replace("512", "0")) is None


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        (
            "> RAKP 2 HMAC is invalid\nError: Unable to establish IPMI v2 / RMCP+ session\n",
            "refused",
        ),
        (
            "RAKP 2 message indicates an error : unauthorized name\nError: Unable to establish IPMI v2 / RMCP+ session\n",
            "refused",
        ),
        (
            "Loading IANA PEN Registry...\nError: Unable to establish IPMI v2 / RMCP+ session\n",
            "silent",
        ),
        (
            "Invalid completion code received: Invalid command\nDiscovered IPMB address 0x0\nSet Power failed: Node busy\n",
            "busy",
        ),
        ("    DCMI request failed because: Invalid command (c1)\n", "unsupported"),
        ("Could not open device at /dev/ipmi0 or /dev/ipmi/0: No such file\n", "silent"),
        ("Set Chassis Power Control to Up/On failed: Unknown\n", "failed"),
        ("", "failed"),
    ],
)
def test_complaints(complaint: str, kind: str) -> None:
    ipmi = Ipmi(Bmc(host="10.0.0.21", user="u"), lambda _: False, lambda *_: (1, "", complaint))
    with pytest.raises(PowerFault) as told:
        ipmi.state()
    assert told.value.kind == kind


def test_a_password_is_in_no_argument_and_no_other_variable_is_passed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_TOKEN", "x")
    seen: list[tuple[list[str], dict[str, str]]] = []

    def spy(
        command: Sequence[str], environment: dict[str, str], _seconds: float
    ) -> tuple[int, str, str]:
        seen.append((list(command), environment))
        return 0, "System Power : on\n", ""

    ipmi = Ipmi(Bmc(host="10.0.0.21", user="u", password=lambda: "pw-1234"), lambda _: False, spy)
    assert ipmi.state() == "on"
    ((command, environment),) = seen
    assert "pw-1234" not in " ".join(command)
    assert environment["IPMI_PASSWORD"] == "pw-1234"
    assert "MY_TOKEN" not in environment
    local = Ipmi(Bmc(host="local"), lambda _: False, spy)
    local.turn_off(hard=False)
    assert seen[-1][0] == ["ipmitool", "-I", "open", "-v", "chassis", "power", "soft"]


def test_a_command_that_hangs_or_is_not_there_is_a_fault() -> None:
    with pytest.raises(PowerFault) as told:
        run(["sleep", "9"], {"PATH": "/usr/bin:/bin"}, 0.05)
    assert told.value.kind == "silent"
    with pytest.raises(PowerFault) as told:
        run(["no-such-ipmitool"], {}, 1)
    assert told.value.kind == "unsupported"


def test_a_wrong_password_is_told_from_a_bmc_that_is_not_there(bmc_ipmi: str) -> None:
    host, _, port = bmc_ipmi.partition(":")
    for user, password in ((outside.USER, "wrong"), ("nobody", outside.PASSWORD)):
        ipmi = Ipmi(
            Bmc(host=host, port=int(port), user=user, password=lambda p=password: p, cipher=3),
            lambda _: False,
        )
        with pytest.raises(PowerFault) as told:
            ipmi.state()
        assert told.value.kind == "refused", told.value


def test_reading_sensors_leaves_them_there(bmc_ipmi: str) -> None:
    host, _, port = bmc_ipmi.partition(":")
    bmc = Bmc(
        host=host, port=int(port), user=outside.USER, password=lambda: outside.PASSWORD, cipher=3
    )
    ipmi = Ipmi(bmc, lambda name: name == "FAN1")
    for _ in range(2):
        told = {each.name: each.verdict for each in ipmi.sensors()}
        assert told["CPU Temp"] == "OK"
        assert "FAN1" not in told

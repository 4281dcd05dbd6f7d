"""Plugs: what they are asked, what they answer that is none, and whom they are never sent on to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ouvrage.adapters.plugs import Shelly, Socket, Tasmota, digest
from ouvrage.adapters.power_port import PowerFault
from tests.remote import outside

PASSWORD = "p&ss=w rd"


def test_digest_is_rfc_7616s() -> None:
    # RFC 7616, 3.9.1: the example with SHA-256, and the one with MD5.
    asked = {
        "realm": "http-auth@example.org",
        "nonce": "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",
        "algorithm": "SHA-256",
    }
    said = digest(
        "Mufasa",
        "Circle of Life",
        "/dir/index.html",
        asked,
        "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    )
    assert 'response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"' in said
    said = digest(
        "Mufasa",
        "Circle of Life",
        "/dir/index.html",
        asked | {"algorithm": "MD5"},
        "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    )
    assert 'response="8ca523f5e9506fed4657c9700eebdbec"' in said


@pytest.mark.parametrize(
    ("form", "make"), [("gen1", Shelly), ("gen2", Shelly), ("tasmota", Tasmota)]
)
def test_a_wrong_password_is_refused_and_never_repeated(form: str, make: type) -> None:
    made = outside.Plug(form, password=PASSWORD)
    with outside.plug(made) as address:
        good = make(Socket(address=address, user=outside.USER, password=lambda: PASSWORD))
        assert good.state() == "on"
        for password in (lambda: "wrong", None):
            bad = make(Socket(address=address, user=outside.USER, password=password))
            with pytest.raises(PowerFault) as told:
                bad.turn_off()
            assert told.value.kind == "refused"
            assert "wrong" not in str(told.value)
    assert made.on


def test_a_redirect_is_not_followed() -> None:
    with (
        outside.plug(seen := outside.Plug("gen1")) as other,
        outside.plug(outside.Plug("gen1", sends_to=f"{other}/shelly")) as address,
        pytest.raises(PowerFault, match="not followed"),
    ):
        Shelly(Socket(address=address)).state()
    assert seen.asked == []


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[]", b'"on"', b'{"ison": "yes"}', b'{"output": 1}', b'{"POWER": true}'],
)
def test_what_is_no_answer_is_never_a_state(answer: bytes) -> None:
    with outside.serving(lambda *_: (200, {}, answer)) as address:
        for make in (Shelly, Tasmota):
            try:
                assert make(Socket(address=address)).state() == "unknown"
            except PowerFault as fault:
                assert fault.kind == "garbled"  # noqa: PT017 - either is right, a state is not


def test_faults_are_told_apart(tmp_path: Path) -> None:
    for status, kind in ((503, "busy"), (404, "unsupported"), (500, "failed")):
        with (
            outside.serving(lambda *_, status=status: (status, {}, {})) as address,
            pytest.raises(PowerFault) as told,
        ):
            Tasmota(Socket(address=address)).state()
        assert told.value.kind == kind
    with pytest.raises(PowerFault) as told:
        Tasmota(Socket(address=f"http://127.0.0.1:{outside.free_port()}")).state()
    assert told.value.kind == "silent"


def test_the_second_outlet_is_another(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(_method: str, path: str, *_: object) -> tuple[int, dict[str, str], object]:
        asked.append(path)
        return 200, {}, {"POWER2": "OFF", "PowerOnState": "1"}

    with outside.serving(answer) as address:
        tasmota = Tasmota(Socket(address=address, outlet=1))
        assert tasmota.state() == "off"
        assert tasmota.restore_policy() == "on"
    assert asked[0] == "/cm?cmnd=Power2"

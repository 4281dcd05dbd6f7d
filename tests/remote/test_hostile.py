"""BMCs and plugs that mean ill, and files that are none: each ends in time, as a fault, and invents no figure."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ouvrage.adapters import redfish_form as form
from ouvrage.adapters.plugs import Shelly, Socket
from ouvrage.adapters.power_port import PowerFault, PowerPort
from ouvrage.adapters.remote_config import ordered_at, power_port_of, remote_of, secret_at
from ouvrage.base.errors import OuvrageError
from tests.remote import outside
from tests.remote.fake_bmc import SYSTEM, Bmc

LOG = f"{SYSTEM}/LogServices/SEL/Entries"


def port_at(home: Path, kind: str, address: str, more: str = "") -> PowerPort:
    (home / "remote.toml").write_text(f'[node.n1]\nkind = "{kind}"\naddress = "{address}"\n{more}')
    return power_port_of(remote_of(home, "n1"))


@contextmanager
def dripping(first: bytes) -> Iterator[str]:
    """What sends ``first``, and then a byte ten times a second for as long as somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip(taken: socket.socket) -> None:
            try:
                taken.sendall(first)
                while True:
                    taken.sendall(b"a")
                    time.sleep(0.1)
            except OSError:
                taken.close()

        def serve() -> None:
            try:
                while True:
                    threading.Thread(target=drip, args=(server.accept()[0],), daemon=True).start()
            except OSError:
                return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", ["redfish", "shelly"])
@pytest.mark.parametrize(
    "first", [b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-A: "]
)
def test_one_that_drips_is_left_when_its_time_is_over(
    tmp_path: Path, kind: str, first: bytes
) -> None:
    with dripping(first) as address:
        port = port_at(tmp_path, kind, address, "timeout_s = 1\n")
        began = time.monotonic()
        with pytest.raises(PowerFault) as told:
            port.state()
        assert time.monotonic() - began < 2.5
        assert told.value.kind == "silent"


@pytest.mark.parametrize(
    "challenge", ["Digest nonsense", "Digest =", "Digest", "", 'Digest qop="auth']
)
def test_a_challenge_that_is_none_is_a_refusal(challenge: str) -> None:
    def answer(_: str, path: str, *__: Any) -> Any:
        if path == "/shelly":
            return 200, {}, {"gen": 2}
        return 401, {"WWW-Authenticate": challenge}, {}

    with outside.serving(answer) as address:
        port = Shelly(Socket(address=address, user="u", password=lambda: "s3cret"))
        with pytest.raises(PowerFault) as told:
            port.state()
    assert told.value.kind == "refused"


def test_a_second_generation_is_never_shown_the_password_itself() -> None:
    shown: list[str] = []

    def answer(_: str, path: str, __: Any, headers: Any) -> Any:
        if path == "/shelly":
            return 200, {}, {"gen": 2}
        shown.append(headers.get("Authorization") or "")
        return 401, {"WWW-Authenticate": 'Basic realm="x"'}, {}

    with outside.serving(answer) as address, pytest.raises(PowerFault):
        Shelly(Socket(address=address, user="u", password=lambda: "s3cret")).state()
    assert shown == [""]


@pytest.mark.parametrize(
    "reference",
    [
        "command:pass 'show",
        "file:~nobody-at-all/x",
        "file:a\0b",
        "file:FIFO",
        "command:a\0b",
        "file:FOLDER",
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(tmp_path: Path, reference: str) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    reference = reference.replace("FIFO", str(tmp_path / "fifo")).replace("FOLDER", str(tmp_path))
    with pytest.raises(OuvrageError) as refused:
        secret_at(reference, "here")
    assert refused.value.code == "remote/password"


@pytest.mark.parametrize("kind", ["redfish", "ipmi", "shelly", "tasmota"])
def test_a_password_that_is_gone_is_a_fault_of_the_one_machine(tmp_path: Path, kind: str) -> None:
    address = "127.0.0.1:9" if kind == "ipmi" else "http://127.0.0.1:9"
    with outside.serving(lambda *_: (401, {}, {})) as served:
        port = port_at(
            tmp_path,
            kind,
            address if kind == "ipmi" else served,
            'user = "u"\npassword = "file:/no/such"\n',
        )
        with pytest.raises(PowerFault) as told:
            port.state()
    assert told.value.kind == "refused"
    assert kind == "shelly" or "/no/such" in str(told.value)


def test_a_password_beyond_latin_1_is_sent_as_utf_8(tmp_path: Path) -> None:
    import base64

    secret = tmp_path / "secret"
    secret.write_text("pässw€rd\n", encoding="utf-8")
    secret.chmod(0o600)
    bmc, seen = Bmc(), set[str]()

    def answer(method: str, path: str, body: Any, headers: Any) -> Any:
        seen.add(headers.get("Authorization", ""))
        return bmc(method, path, body, headers)

    with outside.serving(answer) as address:
        port = port_at(tmp_path, "redfish", address, f'user = "u"\npassword = "file:{secret}"\n')
        assert port.state() == "on"
    assert "Basic " + base64.b64encode("u:pässw€rd".encode()).decode() in seen


@pytest.mark.parametrize(
    "text",
    [None, "", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"],
)
def test_a_file_of_authorities_that_is_none_is_said_to_be(tmp_path: Path, text: str | None) -> None:
    ca = tmp_path / "ca.pem"
    if text is not None:
        ca.write_text(text)
    with pytest.raises((PowerFault, OuvrageError)) as told:
        port_at(tmp_path, "redfish", "https://127.0.0.1:9", f'ca = "{ca}"\n').state()
    assert "ca.pem" in str(told.value)


@pytest.mark.parametrize(
    "watts", [-40, "-1", float("nan"), 1e300, True, [], "NaN", "Infinity", 2_000_000]
)
def test_a_draw_that_cannot_be_is_none(watts: Any) -> None:
    assert form.draw_of({"PowerControl": [{"PowerConsumedWatts": watts}]}) is None
    assert form.draw_of({"PowerWatts": {"Reading": watts}}) is None


def test_the_newest_of_a_long_log_is_not_lost(tmp_path: Path) -> None:
    bmc = Bmc()
    entries = [
        {
            "Id": str(n),
            "Created": f"2026-11-{1 + n // 1440 % 28:02}T{n // 60 % 24:02}:{n % 60:02}:00Z",
            "Severity": "OK",
            "Message": "x",
        }
        for n in range(3000)
    ]
    bmc.tree[LOG] = {"Members": entries}
    with outside.serving(bmc) as address:
        page = port_at(tmp_path, "redfish", address).events()
    assert (len(page.entries), page.entries[-1].id, page.gap) == (3000, "2999", False)


def test_a_log_without_end_says_that_it_is_not_whole(tmp_path: Path) -> None:
    bmc = Bmc()
    for n in range(40):
        bmc.tree[f"{LOG}{n or ''}"] = {
            "Members": [{"Id": str(n), "Message": "x"}], "Members@odata.nextLink": f"{LOG}{n + 1}",
        }  # fmt: skip
    with outside.serving(bmc) as address:
        page = port_at(tmp_path, "redfish", address).events()
    assert page.gap


def test_an_answer_packed_twice_is_not_unpacked(tmp_path: Path) -> None:
    import gzip

    packed = gzip.compress(gzip.compress(b" " * (1 << 20)))
    answer = (200, {"Content-Encoding": "gzip, gzip"}, packed)
    with outside.serving(lambda *_: answer) as address, pytest.raises(PowerFault) as told:
        port_at(tmp_path, "redfish", address).state()
    assert told.value.kind == "garbled"
    assert "packed" in str(told.value)


def test_systems_of_one_service_and_outlets_of_one_plug_are_ordered_apart(tmp_path: Path) -> None:
    (tmp_path / "remote.toml").write_text(
        "".join(
            f'[node.n{n}]\nkind = "shelly"\naddress = "http://10.0.0.9"\noutlet = {n}\n'
            for n in (0, 1)
        )
    )
    names = {ordered_at(remote_of(tmp_path, node)) for node in ("n0", "n1")}
    assert len(names) == 2

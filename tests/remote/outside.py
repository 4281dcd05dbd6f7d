"""Real things to switch: sushy's emulated BMC, OpenIPMI's simulated one, and plugs that answer as Shelly and Tasmota do.

The emulated BMC waits up to eleven seconds before a change shows, as hardware does; here it is told to take a fifth of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

USER, PASSWORD = "admin", "n0t-for-anyone"
HAS_EMULATOR = shutil.which("sushy-emulator", path=str(Path(sys.executable).parent)) is not None
HAS_SIM = bool(shutil.which("ipmi_sim") and shutil.which("ipmitool"))
_QUICK = (
    "import sys, sushy_tools.emulator.resources.systems.fakedriver as fake\n"
    "import time; fake.random.randint = lambda least, most: time.time() % 1 + SHOWS_S\n"  # it adds to whole seconds
    "from sushy_tools.emulator.main import main\n"
    "sys.exit(main())\n"
)


def free_port(kind: int = socket.SOCK_STREAM) -> int:
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _until(condition: Callable[[], bool], process: subprocess.Popen[Any], log: Path) -> None:
    last = time.monotonic() + 30
    while not condition():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < last, log.read_text()
        time.sleep(0.02)


@contextmanager
def _running(command: list[str], log: Path, **options: Any) -> Iterator[subprocess.Popen[Any]]:
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
        if process.stdin:
            process.stdin.close()


@contextmanager
def emulator(
    where: Path, names: list[str], tls: tuple[Path, Path] | None = None, shows_s: float = 0.2
) -> Iterator[str]:
    """sushy-emulator with a system for each name; every request needs ``USER`` and ``PASSWORD``."""
    import bcrypt

    port = free_port()
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (where / "users").write_text(f"{USER}:{hashed}\n")
    systems = [
        {
            "uuid": _uuid(name),
            "name": name,
            "power_state": "On",
            "external_notifier": False,
            "nics": [],
        }
        for name in names
    ]
    settings = {
        "SUSHY_EMULATOR_LISTEN_IP": "127.0.0.1", "SUSHY_EMULATOR_LISTEN_PORT": port,
        "SUSHY_EMULATOR_STATE_DIR": str(where / "state"), "SUSHY_EMULATOR_FAKE_DRIVER": True,
        "SUSHY_EMULATOR_FAKE_SYSTEMS": systems, "SUSHY_EMULATOR_AUTH_FILE": str(where / "users"),
    }  # fmt: skip
    if tls:
        settings |= {"SUSHY_EMULATOR_SSL_CERT": str(tls[0]), "SUSHY_EMULATOR_SSL_KEY": str(tls[1])}
    (where / "state").mkdir(exist_ok=True)
    (where / "emulator.conf").write_text(
        "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    )
    log = where / "emulator.log"
    quick = _QUICK.replace("SHOWS_S", str(shows_s))
    command = [sys.executable, "-c", quick, "--config", str(where / "emulator.conf")]
    with _running(command, log) as process:
        _until(lambda: _listens(port), process, log)
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"


def _uuid(name: str) -> str:
    made = hashlib.md5(name.encode()).hexdigest()
    return f"{made[:8]}-{made[8:12]}-{made[12:16]}-{made[16:20]}-{made[20:]}"


def system_id(name: str) -> str:
    """The id under which the emulator has a system."""
    return _uuid(name)


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def certificate(where: Path) -> tuple[Path, Path, str]:
    """A certificate that nobody signed, its key, and its SHA-256."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bmc")])
    began = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(7).not_valid_before(began).not_valid_after(began + datetime.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (where / "bmc.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (where / "bmc.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return where / "bmc.pem", where / "bmc.key", made.fingerprint(hashes.SHA256()).hex()


def sdr(number: int, name: str, sensor_type: int, unit: int, upper: tuple[int, int, int]) -> str:
    """A full sensor record (IPMI 2.0, table 43-1): its value is its raw byte, its upper bounds can be read."""
    body = [
        0x20, 0, number, 7, 1, 0x7F, 0x68, sensor_type, 1, 0x80, 0x0A, 0x80, 0x0A, 0x38, 0x38, 0, unit, 0, 0, 1, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 255, 0, upper[2], upper[1], upper[0], 0, 0, 0, 2, 2, 0, 0, 0, 0xC0 | len(name), *name.encode(),
    ]  # fmt: skip
    record = [number, 0, 0x51, 1, len(body), *body]
    return " ".join(f"0x{byte:02x}" for byte in record)


_NONE = " ".join(["000000000000000"] * 4)
_CHASSIS = """#!/bin/sh
cd "$(dirname "$0")" && shift
case "$1 $2" in
  "get power") echo "power:$(cat power)" ;;
  "set power") echo "$3" > power ;;
  "set shutdown") echo 0 > power ;;
esac
"""


@contextmanager
def ipmi_sim(where: Path) -> Iterator[str]:
    """OpenIPMI's simulator of a BMC, with two sensors and two events; ``where/power`` holds 0 or 1."""
    port = free_port(socket.SOCK_DGRAM)
    script = where / "chassis.sh"
    script.write_text(_CHASSIS)
    script.chmod(0o755)
    (where / "power").write_text("1\n")
    (where / "state").mkdir(exist_ok=True)
    (where / "lan.conf").write_text(
        f'name "n1"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n'
        "    allowed_auths_admin none md2 md5 straight\n    guid a123456789abcdefa123456789abcdef\n  endlan\n"
        f'  chassis_control "{script} 0x20"\n  user 2 true "{USER}" "{PASSWORD}" admin 10 none md2 md5 straight\n'
    )
    (where / "sim.emu").write_text(
        "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nsel_enable 0x20 1000 0x0a\n"
        "sensor_add 0x20 0 1 1 1\nsensor_set_threshold 0x20 0 1 readable 111000 100 90 80 0 0 0\n"
        f"sensor_set_event_support 0x20 0 1 enable scanning per-state {_NONE}\nsensor_set_value 0x20 0 1 42 0\n"
        "sensor_add 0x20 0 2 4 1\nsensor_set_threshold 0x20 0 2 readable 111000 250 240 230 0 0 0\n"
        f"sensor_set_event_support 0x20 0 2 enable scanning per-state {_NONE}\nsensor_set_value 0x20 0 2 120 0\n"
        f"main_sdr_add 0x20 {sdr(1, 'CPU Temp', 1, 1, (80, 90, 100))}\n"
        f"main_sdr_add 0x20 {sdr(2, 'FAN1', 4, 18, (230, 240, 250))}\n"
        "mc_enable 0x20\n"
        "sel_add 0x20 2 0x10 0x2d 0x0d 0x6b 0x20 0x00 0x04 0x0c 0x02 0x6f 0x01 0xff 0xff\n"
        "sel_add 0x20 2 0x20 0x2d 0x0d 0x6b 0x20 0x00 0x04 0x08 0x51 0x6f 0x01 0xff 0xff\n"
    )
    log = where / "sim.log"
    command = [
        "ipmi_sim",
        "-c",
        str(where / "lan.conf"),
        "-f",
        str(where / "sim.emu"),
        "-s",
        str(where / "state"),
        "-n",
    ]
    asking = [
        "ipmitool",
        "-I",
        "lanplus",
        "-H",
        "127.0.0.1",
        "-p",
        str(port),
        "-C",
        "3",
        "-U",
        USER,
        "-E",
    ]
    env = {**os.environ, "IPMI_PASSWORD": PASSWORD}
    with _running(command, log, stdin=subprocess.PIPE) as process:
        _until(
            lambda: (
                subprocess.run(
                    [*asking, "mc", "info"], env=env, capture_output=True, check=False
                ).returncode
                == 0
            ),
            process,
            log,
        )
        yield f"127.0.0.1:{port}"


@dataclass
class Plug:
    """A plug's state, and what it was asked. ``form`` is gen1, gen2 or tasmota; ``password`` guards it."""

    form: str
    on: bool = True
    password: str | None = None
    asked: list[str] = field(default_factory=list)
    outlet: int = 0
    sends_to: str | None = None

    def answer(self, path: str, authorization: str | None) -> tuple[int, Mapping[str, str], Any]:
        self.asked.append(path)
        if self.sends_to:
            return 302, {"Location": self.sends_to}, {}
        parts = urlsplit(path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if self.form == "tasmota":
            return 200, {}, self._tasmota(asked)
        if parts.path != "/shelly" and self.password and not self._knows(path, authorization):
            scheme = (
                'Digest qop="auth", realm="plug", nonce="60", algorithm=SHA-256'
                if self.form == "gen2"
                else 'Basic realm="plug"'
            )
            return 401, {"WWW-Authenticate": scheme}, {}
        return (200, {}, self._shelly(parts.path, asked))

    def _knows(self, path: str, authorization: str | None) -> bool:
        if not authorization:
            return False
        if self.form == "gen1":
            import base64

            return base64.b64decode(authorization.split()[1]).decode() == f"{USER}:{self.password}"
        told = dict(re.findall(r'(\w+)="?([^",]+)"?', authorization))

        def hashed(text: str) -> str:
            return hashlib.sha256(text.encode()).hexdigest()

        secret = hashed(f"{USER}:plug:{self.password}")
        wanted = hashed(f"{secret}:60:{told['nc']}:{told['cnonce']}:auth:{hashed(f'GET:{path}')}")
        return told["response"] == wanted

    def _shelly(self, path: str, asked: dict[str, str]) -> Any:
        if path == "/shelly":
            return (
                {"type": "SHPLG-S", "auth": False}
                if self.form == "gen1"
                else {"gen": 2, "model": "SNPL-00112EU"}
            )
        if "turn" in asked or "on" in asked:
            self.on = asked.get("turn", asked.get("on")) in ("on", "true")
        watts = 312.5 if self.on else 0
        outlet = self.outlet
        if path.startswith("/rpc/") and asked.get("id") != str(outlet):
            return {"id": -1}
        return {
            f"/relay/{outlet}": {"ison": self.on, "source": "http"},
            f"/settings/relay/{outlet}": {"default_state": "last"},
            f"/meter/{outlet}": {"power": watts, "is_valid": True, "total": 1200},
            "/rpc/Switch.GetStatus": {
                "id": 0,
                "output": self.on,
                "apower": watts,
                "aenergy": {"total": 20.5},
            },
            "/rpc/Switch.GetConfig": {"id": 0, "initial_state": "restore_last"},
            "/rpc/Switch.Set": {"was_on": self.on},
        }[path]

    def _tasmota(self, asked: dict[str, str]) -> Any:
        if self.password and (asked.get("user"), asked.get("password")) != (USER, self.password):
            return {"WARNING": "Need user=<username>&password=<password>"}
        command, _, value = unquote(asked["cmnd"]).partition(" ")
        if command.startswith("Power") and command != "PowerOnState":
            if command != f"Power{self.outlet + 1}":
                return {"Command": "Unknown"}
            if value:
                self.on = value == "On"
            name = "POWER" if self.outlet == 0 else f"POWER{self.outlet + 1}"
            return {name: "ON" if self.on else "OFF"}
        if command == "Status":
            return {"StatusSNS": {"ENERGY": {"Power": 312 if self.on else 0, "Total": 1.5}}}
        if command == "PowerOnState":
            return {"PowerOnState": 3}
        return {"Command": "Unknown"}


@contextmanager
def serving(
    answer: Callable[[str, str, Any, Mapping[str, str]], tuple[int, Mapping[str, str], Any]],
) -> Iterator[str]:
    """An HTTP server that answers what a function says to method, path, body and headers."""

    class Asked(BaseHTTPRequestHandler):
        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            status, headers, value = answer(self.command, self.path, body, self.headers)
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            try:
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name, text)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                pass  # who asked has gone

        do_GET = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815 - named by http.server

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def plug(made: Plug) -> Iterator[str]:
    """A plug that listens."""
    with serving(
        lambda _method, path, _body, headers: made.answer(path, headers.get("Authorization"))
    ) as address:
        yield address


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.loads(answer.read())

"""The same training as a tenant's work on a platform of this machine's own: two offers, two jobs, one bill.

Starts ``ouvrage up`` on the loopback interface, lets this machine join, puts two offers up for sale (*standard*: one core at 0.30
an hour; *optimised*: two cores at 0.36), and submits the training to both as a tenant, each in a sandbox. Everything is asked of the
``ouvrage`` command, as anyone would. The platform's state stays in ``out/platform``: run again, it goes on with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUVRAGE = [sys.executable, "-m", "ouvrage"]
TENANT, LOGIN = "acme", "ann@acme"
OFFERS = (("standard", "0.30/h", 1), ("optimised", "0.36/h", 2))
JOINS_WITHIN_S = 90


def lacking() -> str | None:
    """What keeps this machine from running other people's work in a sandbox; None where nothing does."""
    if os.geteuid() != 0:
        return "control groups and mounts need root; this process is not root"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt-get install bubblewrap)"
    tried = [
        "bwrap",
        "--unshare-all",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
        "true",
    ]
    done = subprocess.run(tried, capture_output=True, text=True, check=False)
    return (
        None if done.returncode == 0 else f"user namespaces do not work here: {done.stderr.strip()}"
    )


@dataclass
class Platform:
    """A platform with its state below a directory, and the command as its owner or as its tenant."""

    out: Path
    url: str = ""
    password: str | None = None
    tenant: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.out / "platform"

    def start(self) -> None:
        """Start it, or find it running; its owner's password is made at the first start."""
        self.stop(quiet=True)
        seen = [word for path in visible() for word in ("--see", str(path))]
        started = self.ask(
            "up", "--state", str(self.state), "--listen", "127.0.0.1:0", "--detach", *seen, "--json"
        )
        self.url, self.password = started["url"], started["password"]

    def words(self) -> str:
        """Where it runs, and the administrator's password at the first start."""
        lines = [f"The platform runs at {self.url}, reachable from this machine alone."]
        if self.password is not None:
            lines.append(
                f"  its console: sign in as admin with {self.password}    (shown this once)"
            )
        return "\n".join(lines)

    def stop(self, *, quiet: bool = False) -> None:
        done = subprocess.run(
            [*OUVRAGE, "down", "--state", str(self.state)],
            capture_output=True,
            text=True,
            check=False,
        )
        if not quiet:
            print(done.stdout.strip() or done.stderr.strip())

    def environment(self, *, as_tenant: bool = False) -> dict[str, str]:
        """Whose command it is."""
        own = {"OUVRAGE_URL": self.url, "OUVRAGE_TOKEN_FILE": str(self.state / "owner.token")}
        return os.environ | (self.tenant if as_tenant else own)

    def ask(self, *words: str, as_tenant: bool = False) -> Any:
        """What a command answers as JSON; a refusal ends this script with its words."""
        done = subprocess.run(
            [*OUVRAGE, *words], capture_output=True, text=True, check=False,
            env=self.environment(as_tenant=as_tenant),
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return json.loads(done.stdout)

    def wait_for_node(self) -> None:
        """Until this machine has joined: the first time its sandbox is tried in every way first."""
        until = time.monotonic() + JOINS_WITHIN_S
        while not any(node["state"] == "here" for node in self.ask("node", "list", "--json")):
            if time.monotonic() > until:
                raise SystemExit(
                    f"This machine did not join within {JOINS_WITHIN_S} s: see {self.state}/server.log"
                )
            time.sleep(0.5)

    def set_up(self) -> None:
        """Two offers and a tenant with money, where they are not there yet."""
        names = {each["name"] for each in self.ask("offer", "list", "--json")}
        for name, price, cores in OFFERS:
            if name not in names:
                self.ask(
                    "offer",
                    "create",
                    name,
                    "--price",
                    price,
                    "--cpus",
                    str(cores),
                    "--memory",
                    "1GiB",
                    "--json",
                )
        home = self.out / "tenant"
        self.tenant = {"OUVRAGE_HOME": str(home.absolute()), "OUVRAGE_URL": self.url}
        self.tenant["OUVRAGE_TOKEN_FILE"] = str(home.absolute() / "token")
        if not (home / "token").exists():
            self._new_tenant(home)

    def _new_tenant(self, home: Path) -> None:
        made = self.ask("tenant", "create", TENANT, "--admin", LOGIN.partition("@")[0], "--json")
        self.ask("payment", "add", TENANT, "5.00", "--reference", "a first top-up", "--json")
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        login = [*OUVRAGE, "login", self.url, "--login", LOGIN, "--password-stdin", "--json"]
        own = os.environ | {"OUVRAGE_HOME": str(home.absolute())}
        subprocess.run(
            login, input=made["password"], text=True, check=True, env=own, stdout=subprocess.DEVNULL
        )
        kept = json.loads(subprocess.run([*OUVRAGE, "token", "create", "make-run", "--scope", "all", "--json"],
                          env=own, capture_output=True, text=True, check=True).stdout)  # fmt: skip
        os.close(os.open(home / "token", os.O_CREAT | os.O_WRONLY, 0o600))
        (home / "token").write_text(kept["secret"] + "\n", "ascii")


def visible() -> list[Path]:
    """What the sandbox must see to run this example: this Python, what is installed for it, and the example."""
    places = [Path(sys.prefix), HERE]
    base = Path(sys.base_prefix)
    if not base.is_relative_to("/usr"):
        places.append(base)
    import ouvrage

    source = Path(ouvrage.__file__).resolve().parents[1]
    if not source.is_relative_to(sys.prefix):
        places.append(source)
    return places


def train(platform: Platform, offer: str, epochs: int) -> str:
    """Submit the training to an offer as the tenant, show its output as it comes, and return the run's id."""
    command = [
        *OUVRAGE,
        "job",
        "submit",
        "--offer",
        offer,
        "--name",
        f"digits-{offer}",
        "--unit",
        "epoch",
    ]
    command += [
        "--follow",
        "--",
        sys.executable,
        str(HERE / "train.py"),
        "--epochs",
        str(epochs),
        "--spread",
    ]
    done = subprocess.run(command, env=platform.environment(as_tenant=True), check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    job = platform.ask("job", "show", f"digits-{offer}", "--json", as_tenant=True)
    return job["last"]["attempt"]

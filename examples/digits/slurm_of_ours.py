"""A Slurm of this machine's own, of two nodes, from the files that ``ouvrage fleet`` writes; it ends with whoever started it.

Both nodes are this machine: each is given one core of it. Everything is asked of the ``ouvrage`` command; the daemons are started from
what it wrote, below a directory of their own, in a namespace of processes that the kernel empties when this program ends.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OUVRAGE = [sys.executable, "-m", "ouvrage"]
NODES = ("f1", "f2")
ASKS = "proxy"
"""As whom places are asked for: a user of every Debian's, as whom nothing else runs."""
NEEDED = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "slurmrestd", "unshare")  # fmt: skip
STARTS_WITHIN_S = 120
_MIB = 1024
"""Of memory, each node's for jobs: a virtual machine's modules often tell nothing."""


def lacking() -> str | None:
    """What is not here to start a Slurm with; None where all is."""
    absent = [name for name in NEEDED if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed (apt-get install slurmctld slurmd slurmdbd slurmrestd munge mariadb-server)"
    if os.path.isdir("/run/systemd/system") and os.path.exists("/etc/slurm/slurm.conf"):
        return "this machine is part of a Slurm already"
    return None


@dataclass
class Fleet:
    """The fleet below ``out``: its owner's home there, its files and daemons in a directory with a short path."""

    out: Path
    at: Path = field(
        default_factory=lambda: Path(tempfile.mkdtemp(prefix="ouvrage-fleet-")).resolve()
    )
    ports: dict[str, int] = field(default_factory=dict)
    daemons: subprocess.Popen[bytes] | None = None

    @property
    def root(self) -> Path:
        """What stands before every path of its files."""
        return self.at / "root"

    @property
    def conf(self) -> str:
        """Its slurm.conf, for Slurm's own commands."""
        return f"{self.root}/etc/slurm/slurm.conf"

    @property
    def places(self) -> Path:
        """Where batch jobs and runners meet."""
        return self.at / "places"

    def environment(self) -> dict[str, str]:
        """Its owner's command."""
        return {**os.environ, "OUVRAGE_HOME": str((self.out / "owner").absolute())}

    def ask(self, *words: str) -> str:
        """What a command answers; a refusal ends this script with its words."""
        done = subprocess.run(
            [*OUVRAGE, *words], capture_output=True, text=True, check=False, env=self.environment()
        )
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)
        return done.stdout

    def prove(self) -> None:
        """The inventory and a short certificate of each node, and the build that the first is."""
        for node in NODES:
            self.ask("node", "inventory", node, "--root", "/")
            short = ("--minutes", "0.05", "--memory-share", "1", "--dir", str(self.at))
            self.ask("node", "qualify", node, "--root", "/", "--for", "batch", *short)
        self.ask("build", "save", "this-machine", "--node", NODES[0], "--allow", "not told:*")

    def write(self) -> str:
        """Settings and members, as files; what the last of them was answered with."""
        self.ports = _free_ports("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "mariadbd", *NODES)  # fmt: skip
        written = ("--to", str(self.at / "plan"))
        own = ",".join(str(self.ports[n]) for n in ("slurmctld", "slurmd", "slurmdbd", "slurmrestd"))  # fmt: skip
        self.ask(
            "fleet", "init", "two", "--controller", HERE, "--address", "127.0.0.1", "--build", "this-machine", "--for", "batch",
            "--root", str(self.root), "--ports", own, "--database", f"127.0.0.1:{self.ports['mariadbd']}", *written,
        )  # fmt: skip
        said = ""
        for node in NODES:
            said = self.ask(
                "fleet", "add", node, "--host", HERE, "--address", "127.0.0.1", "--port", str(self.ports[node]),
                "--cores", "1", "--memory", str(_MIB), *written,
            )  # fmt: skip
        for role in ("controller", "node"):
            put = ["sh", str(self.at / "plan/install.sh"), "put", role]
            subprocess.run(put, check=True, stdout=subprocess.DEVNULL)
        return said

    def start(self) -> None:
        """Start every daemon and wait until both nodes are idle."""
        self.at.chmod(0o755)
        self.places.mkdir(mode=0o755)
        shutil.chown(self.places, ASKS)
        (self.at / "db").mkdir()
        shutil.chown(self.at / "db", "mysql")
        install = ["mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={self.at}/db", "--skip-test-db",
                   "--auth-root-authentication-method=normal"]  # fmt: skip
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        script = _START.format(at=self.at, root=self.root, nodes=" ".join(NODES), **self.ports)
        with (self.at / "daemons.log").open("wb") as log:
            self.daemons = subprocess.Popen(
                ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "sh", "-c", script],
                stdin=subprocess.PIPE, stdout=log, stderr=log, env={**os.environ, "SLURM_CONF": self.conf},
            )  # fmt: skip
        until = time.monotonic() + STARTS_WITHIN_S
        while self.slurm("sinfo", "-h", "-o", "%D %T") != f"{len(NODES)} idle":
            if time.monotonic() > until or self.daemons.poll() is not None:
                raise SystemExit(f"Slurm did not start: {(self.at / 'daemons.log').read_text()[-3000:]}")  # fmt: skip
            time.sleep(0.3)

    def slurm(self, *words: str) -> str:
        """What one of Slurm's own commands says; nothing where it fails."""
        env = {**os.environ, "SLURM_CONF": self.conf}
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
        return done.stdout.strip() if done.returncode == 0 else ""

    def server_toml(self) -> str:
        """What a platform must know of it."""
        return "\n".join([
            "[slurm]", f'rest = "http://127.0.0.1:{self.ports["slurmrestd"]}"', f'user = "{ASKS}"', f'places = "{self.places}"',
            f'conf = "{self.conf}"', 'partition = "all"', 'interruptible_qos = "interruptible"', "",
        ])  # fmt: skip

    def stop(self) -> None:
        """End every daemon and every job, and remove what they wrote."""
        if self.daemons is not None and self.daemons.stdin is not None:
            self.daemons.stdin.close()
            self.daemons.wait(30)
        for group in Path("/sys/fs/cgroup").glob("**/*slurm*"):
            if any(group.name.endswith(node) for node in NODES):
                _removed(group)
        shutil.rmtree(self.at, ignore_errors=True)


def _removed(group: Path) -> None:
    """Remove the kernel's empty groups of a node, the innermost first."""
    for place, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(place)
        except OSError:
            return


HERE = socket.gethostname().partition(".")[0]


def _free_ports(*names: str) -> dict[str, int]:
    taken = [socket.socket() for _ in names]
    for each in taken:
        each.bind(("127.0.0.1", 0))
    found = {name: each.getsockname()[1] for name, each in zip(names, taken, strict=True)}
    for each in taken:
        each.close()
    return found


_START = """
cd / && m={root}/run/munge
as() {{ user=$1; shift; setpriv --reuid="$user" --regid="$(id -g "$user")" --clear-groups "$@"; }}
as munge munged --foreground --key-file={root}/etc/munge/munge.key --socket=$m/munge.socket.2 --pid-file=$m/pid \\
  --log-file=$m/log --seed-file=$m/seed --num-threads=4 &
mariadbd --no-defaults --user=mysql --datadir={at}/db --socket={at}/db/sock --port={mariadbd} --bind-address=127.0.0.1 \\
  --pid-file={at}/db/pid --innodb-buffer-pool-size=64M --innodb-lock-wait-timeout=900 &
until [ -S {at}/db/sock ] && [ -S $m/munge.socket.2 ]; do sleep 0.1; done
mariadb --no-defaults --socket={at}/db/sock --user=root < {root}/etc/slurm/ouvrage/accounting.sql
slurmdbd -D &
sh {root}/etc/slurm/ouvrage/accounting.sh
slurmctld -D &
for node in {nodes}; do slurmd -D -N "$node" & done
as nobody env SLURM_JWT=daemon slurmrestd -a rest_auth/jwt 127.0.0.1:{slurmrestd} &
cat > /dev/null  # until whoever started this is gone
"""


def shown(text: str) -> dict[str, Any]:
    """A command's answer as JSON."""
    return json.loads(text)

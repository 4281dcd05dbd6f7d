"""An ssh server of the tests' own on the loopback: every host name leads to it, and its sessions are root's on this machine."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def ssh_server(place: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """The ssh command that reaches it; its sessions have this ``environment``. Its keys lie in ``place``."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("host", "mine"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)], check=True
        )
    Path("/run/sshd").mkdir(exist_ok=True)
    told = " ".join(f"{name}={value}" for name, value in environment.items())
    (place / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nAuthorizedKeysFile {place}/mine.pub\nStrictModes no\n"
        f"PermitRootLogin yes\nPidFile none\nUsePAM no\n" + (f"SetEnv {told}\n" if told else "")
    )
    (place / "ssh_config").write_text(
        f"Host *\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  IdentityFile {place}/mine\n  BatchMode yes\n"
        f"  StrictHostKeyChecking no\n  UserKnownHostsFile {place}/known\n  LogLevel ERROR\n"
    )
    command = [shutil.which("sshd") or "sshd", "-D", "-e", "-f", str(place / "sshd_config")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as server:
        try:
            assert server.stderr
            said = iter(server.stderr.readline, b"")
            assert any(b"Server listening" in line for line in said), "sshd did not start"
            yield f"ssh -F {place}/ssh_config"
        finally:
            server.terminate()

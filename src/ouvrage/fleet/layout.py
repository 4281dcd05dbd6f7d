"""Where everything of a fleet's Slurm lies on its hosts, below a root of its own or as the system has it.

Decides every path once, so that the files which name one another agree. Without a root they are those of Debian's packages, whose
units start what they find there; with one, a whole Slurm stands beside another.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below ``root``; empty is the system itself."""

    root: str

    @property
    def own(self) -> bool:
        """Whether it stands beside the system's."""
        return bool(self.root)

    @property
    def etc(self) -> str:
        """The directory of slurm.conf."""
        return f"{self.root}/etc/slurm"

    @property
    def hooks(self) -> str:
        """The directory of the scripts that Slurm calls."""
        return f"{self.etc}/ouvrage"

    @property
    def munge_key(self) -> str:
        """The key by which hosts and users believe one another."""
        return f"{self.root}/etc/munge/munge.key"

    @property
    def munge_socket(self) -> str:
        """Where ``munged`` listens."""
        return f"{self.root}/run/munge/munge.socket.2"

    @property
    def jwt_key(self) -> str:
        """The key that signs tokens for the interface over HTTP."""
        return f"{self.etc}/jwt_hs256.key"

    @property
    def state(self) -> str:
        """What the controller remembers."""
        return f"{self.root}/var/lib/slurm/slurmctld"

    @property
    def spool(self) -> str:
        """What a node keeps of its jobs; ``%n`` is the node."""
        return f"{self.root}/var/spool/slurmd.%n"

    @property
    def log(self) -> str:
        """Where the daemons write."""
        return f"{self.root}/var/log/slurm"

    @property
    def run(self) -> str:
        """Where the daemons leave their numbers; munged wants no directory of another user above its own."""
        return f"{self.root}/run/slurm" if self.own else "/run"

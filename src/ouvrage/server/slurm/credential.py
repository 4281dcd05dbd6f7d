"""The JWT that is shown to slurmrestd.

Decides that no secret of Slurm's stands in a file of ours: a token is asked of Slurm itself, for an hour, and is renewed halfway, or when it is
doubted. A bad token is answered like any other fault, so that every refusal makes it doubtful.
"""

from __future__ import annotations

from collections.abc import Callable

from ouvrage.adapters.slurm_commands import Commands
from ouvrage.base.time import SECOND

_TOKEN_S = 3600


class Credential:
    """One user's token at one cluster."""

    def __init__(self, commands: Commands, monotonic: Callable[[], int]) -> None:
        self._commands, self._monotonic = commands, monotonic
        self._token, self._until_us = "", 0

    def now(self) -> str:
        """One that holds for a while yet."""
        now = self._monotonic()
        if now >= self._until_us:
            self._token = self._commands.token(_TOKEN_S)
            self._until_us = now + _TOKEN_S * SECOND // 2
        return self._token

    def doubt(self) -> None:
        """Ask for another before it is shown again."""
        self._until_us = 0

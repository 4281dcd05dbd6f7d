"""The accounts that Slurm charges: one for each project below one for its organisation.

Decides what they are called, and that they are made where they are missing, with the project's weight as its share. An account that the owner named
for a project (``[slurm.accounts]``) is the owner's: it is used, and nothing about it is changed.
"""

from __future__ import annotations

from fractions import Fraction

import structlog

from ouvrage.adapters.slurm_commands import CommandFailed, Commands
from ouvrage.server.slurm.settings import SlurmSettings
from ouvrage.store.platform.tenancy import organisation_of, project_of
from ouvrage.store.transaction import Connection

_WEIGHS = 100
"""The share of a project whose weight is 1: shares are whole, and weights are not."""

_log = structlog.get_logger("ouvrage.server")


class Accounts:
    """The accounts of one cluster, as far as this process has seen to them."""

    def __init__(self, settings: SlurmSettings, commands: Commands) -> None:
        self._settings, self._commands = settings, commands
        self._there: set[str] = set()

    def of(self, connection: Connection, project: str) -> str:
        """The account of a project, made where it is not there. A submit to one that cannot be made is refused, and says so."""
        found = project_of(connection, project)
        org = organisation_of(connection, found.org) if found is not None else None
        if found is None or org is None:
            raise LookupError(project)
        named = self._settings.accounts.get(f"{org.name}/{found.name}")
        if named is not None:
            return named
        account = f"{org.name}-{found.name}"
        if account not in self._there:
            share = max(1, round(_WEIGHS * Fraction(found.weight)))
            self._make(org.name, account, share)
        return account

    def _make(self, above: str, account: str, share: int) -> None:
        qos = [name for name in (self._settings.qos, self._settings.interruptible_qos) if name]
        try:
            self._commands.make_account(above, None, 1)
            self._commands.make_account(account, above, share)
            self._commands.let_charge(account, qos)
            self._there.add(account)
        except CommandFailed as trouble:
            _log.warning("slurm.no_account", account=account, why=str(trouble))

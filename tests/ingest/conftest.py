"""A platform with a tenant and its runs."""

from tests.blackbox.conftest import homes
from tests.platform.conftest import (
    platform_server,
    platform_servers,
    shared_server,
    working,
)
from tests.support.stores import addresses, cluster, database, migrated

__all__ = (
    "addresses", "cluster", "database", "homes", "migrated", "platform_server", "platform_servers",
    "shared_server",     "working",
)  # fmt: skip

"""Fixtures of the store tests."""

from tests.support.stores import (
    address,
    addresses,
    cluster,
    database,
    migrated,
    other_store,
    store,
    stores,
)

__all__ = (
    "address", "addresses", "cluster", "database", "migrated", "other_store", "store", "stores",
)  # fmt: skip

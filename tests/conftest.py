"""Puts the tests on the ground that they stand on, however they were started.

A shell that starts a job in the background lets it ignore SIGINT and SIGQUIT, ``nohup`` does so with SIGHUP, and every
program that the job starts inherits that. Tests that interrupt a program or hang up would then wait for nothing.

Tests of properties draw the same examples each time, so that the suite says the same of the same code;
``make soak`` sets ``OUVRAGE_RANDOM`` and draws others, every time anew (decision 0210).
"""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

settings.register_profile("same", derandomize=True)
settings.register_profile("anew", derandomize=False)
settings.load_profile("anew" if os.environ.get("OUVRAGE_RANDOM") else "same")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of properties, so that they can be run apart."""
    for item in items:
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.property)

"""Puts the tests on the ground that they stand on, however they were started.

A shell that starts a job in the background lets it ignore SIGINT and SIGQUIT, and every program that
the job starts inherits that. Tests that interrupt a program would then wait for nothing.
"""

from __future__ import annotations

import signal

for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

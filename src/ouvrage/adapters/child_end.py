"""What a child does between its birth and the program it becomes: end with its parent.

The kernel sends it SIGTERM when the parent is gone, by whatever way; the child's signal mask is set
too, because a parent that holds signals back would hand that on. Where the kernel cannot be asked a
child simply outlives its parent.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable

_PR_SET_PDEATHSIG = 1


def with_its_parent(mask: Iterable[signal.Signals]) -> Callable[[], None]:
    """For ``preexec_fn``; everything that must be loaded is loaded here, before the fork."""
    parent, held = os.getpid(), list(mask)
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        prctl = None

    def begin() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:  # it went before the kernel was asked
                os._exit(128 + signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)

    return begin

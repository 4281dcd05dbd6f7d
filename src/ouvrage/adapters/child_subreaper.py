"""Makes this process the parent of every descendant that loses its own.

So what is left behind stays in the tree that is measured. Whoever becomes a parent this way must
also wait for its children; that is not done here.
"""

from __future__ import annotations

_PR_SET_CHILD_SUBREAPER = 36


def become() -> bool:
    """Ask the kernel; False where it refuses or cannot be asked, and orphans leave the tree."""
    try:
        import ctypes
    except ImportError:
        return False
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return False
    return prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0

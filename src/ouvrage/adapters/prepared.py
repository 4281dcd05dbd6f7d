"""How a command is to be started, whatever was put around it.

Decides nothing: it is what the adapters that enclose a command give to whoever starts it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """``path`` is executed with ``argv`` and ``environment`` in ``directory``.

    ``descriptors`` must be open in it, and can be closed afterwards. As user ``uid`` (None: whoever
    starts it), inside the attempt's control group if ``joins``, else it goes there by itself.
    ``tells`` is whether it says itself how the command ends, on the descriptor it was given for that.
    """

    path: str
    argv: list[str]
    environment: Mapping[str, str]
    directory: str
    descriptors: tuple[int, ...]
    uid: int | None
    joins: bool
    tells: bool

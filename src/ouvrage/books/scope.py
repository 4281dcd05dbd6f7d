"""What a question about machines is about: all of a site, one node, or one class of GPU on it.

Decides which device belongs to it. A part of a machine that is no device (a case, a site's own cost)
belongs to a class of GPU only through the devices on which it was posted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ouvrage.books.pnl import class_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A node, a class of GPU as ``class_name`` writes it, both, or neither: everything."""

    node: str | None = None
    gpu_class: str | None = None

    def holds(self, node: str, device: str, models: Mapping[str, str | None]) -> bool:
        """Whether a device of a node belongs to it, by the models of the devices."""
        if self.node not in (None, node):
            return False
        return self.gpu_class is None or (
            device in models and class_name(models[device]) == self.gpu_class
        )

    def name(self, site: str) -> str:
        """What it is called."""
        return " of ".join(name for name in (self.gpu_class, self.node) if name) or site

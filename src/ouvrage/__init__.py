"""Ouvrage: what a finished piece of work cost, from measured facts.

In a program that runs under ``ouvrage run``::

    import ouvrage

    for epoch in range(10):
        for batch in ouvrage.watch(loader):  # how long the loop waits for its data
            with ouvrage.span("checkpoint"):
                ...
        ouvrage.unit("epoch")

Anywhere else they do nothing, at next to no cost. Standard library only.
"""

from ouvrage.client import span, unit, watch

__version__ = "0.1.0"
__all__ = ["__version__", "span", "unit", "watch"]

"""How the watch of a machine is set up: the table ``[watch]`` of ``agent.toml``, and what the machine shows of itself.

Decides the settings and their forms; whatever is not understood is refused with its place. Decides too which machine is
one on which we only observe: a marketplace's own program stands on it, or its owner says so. There nothing is ever
touched, and whatever a check asks for is asked of a person.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ouvrage.adapters.toml_text import load_toml, read_text
from ouvrage.adapters.web_address import address_fault
from ouvrage.base.errors import OuvrageError

FILE = "agent.toml"
METRICS, NO_METRICS = "127.0.0.1:8681", "off"
_LISTEN = re.compile(r"off|[0-9.]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
MARKETPLACES = ("/var/lib/vastai_kaalia",)
"""Where marketplaces' programs live on a host: Vast.ai."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """``paths`` must be mounted, with room; ``peers`` are ``host`` or ``host:port``; ``wall`` is a plug's address.

    ``metrics`` is where the view is shown in Prometheus' form, or ``off``. ``expect_gpus`` and ``expect_memory_gib`` say what must be there; None: what the machine lists. ``bmc`` is a home and
    the node that its ``remote.toml`` names (empty: this machine's own, by the kernel's driver). ``keeps_books``: the facts
    go into this home's own store, where energy at the wall is one of them; a server takes health from a node.
    """

    observer: bool = False
    paths: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    time_server: str | None = None
    wall: str | None = None
    expect_gpus: int | None = None
    expect_memory_gib: int | None = None
    metrics: str = METRICS
    bmc: tuple[str, str] | None = None
    keeps_books: bool = True

    def has(self, option: str | None) -> bool:
        """Whether a probe that needs this setting has something to look at."""
        return option is None or bool(getattr(self, option))


def settings_in(state: Path, root: str = "/") -> Settings:
    """What the owner wrote into ``agent.toml``, defaults where there is none. Raises ``OuvrageError``."""
    file = state / FILE
    told: Mapping[str, Any] = {}
    if file.exists():
        told = load_toml(str(file), read_text(file, "agent"), "agent/config").get("watch", {})
    seen = any(os.path.isdir(f"{root.rstrip('/')}{place}") for place in MARKETPLACES)
    return settings_of(told, str(file), observer=seen)


def settings_of(told: object, file: str, *, observer: bool = False) -> Settings:
    """The settings of a table. ``OuvrageError`` names the first that is not understood."""
    if not isinstance(told, dict):
        raise _refused(file, "watch", told, "a table: [watch]")
    given = cast("dict[str, Any]", told)
    for name, value in given.items():
        form = _FORMS.get(name)
        if form is None:
            raise _refused(file, name, value, f"known are {', '.join(_FORMS)}")
        if not _fits(value, form):
            raise _refused(file, name, value, _WORDS[form])
    if "wall" in given and (fault := address_fault(given["wall"])):
        raise _refused(file, "wall", given["wall"], f"no address: {fault}")
    held: dict[str, Any] = {"observer": observer}
    for name, value in given.items():
        held[name] = tuple(value) if _FORMS[name] == "texts" else value
    return Settings(**held)


_FORMS = {
    "observer": "flag",
    "paths": "texts",
    "peers": "texts",
    "time_server": "text",
    "wall": "text",
    "expect_gpus": "count",
    "expect_memory_gib": "count",
    "metrics": "listen",
}
_WORDS = {
    "flag": "true or false",
    "texts": "a list of texts",
    "text": "a text",
    "count": "a whole number from 1 on",
    "listen": 'an address and a port, "127.0.0.1:8681", or "off"',
}


def _fits(value: object, form: str) -> bool:
    if form == "flag":
        return isinstance(value, bool)
    if form == "count":
        return type(value) is int and value > 0
    if form == "listen":
        return isinstance(value, str) and _LISTEN.fullmatch(value) is not None
    if form == "text":
        return isinstance(value, str) and bool(value)
    return isinstance(value, list) and all(
        isinstance(each, str) and each for each in cast("list[object]", value)
    )


def _refused(file: str, name: str, value: object, hint: str) -> OuvrageError:
    return OuvrageError(
        "agent/config",
        f"watch.{name} = {value!r} is not understood"[:300],
        where=(file,),
        hint=hint,
    )

"""A ``slurm.conf`` as text: what it sets and where, what of it cannot be read, and the same text with a few settings changed.

Decides what a line may be (pairs of names and values, values quoted or not, lines that go on after a backslash, ``Include``), that
a line which is none is told by its number and costs no other line, and that a change touches only the value that it changes. What is
in included files is not seen, and that is told. The form is that of https://slurm.schedmd.com/slurm.conf.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ouvrage.adapters.catalogues.rows import Fault

_PAIR = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_]*)\s*=\s*(?P<value>\"[^\"]*\"|[^\s\"]*)")
_LISTS = (
    "nodename",
    "partitionname",
    "downnodes",
    "nodeset",
    "switchname",
    "slurmctldhost",
    "frontendname",
)
"""Names that may come on many lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """``name`` is set to ``value``; ``at`` and ``to`` bound the value in the whole text, quotes included."""

    name: str
    value: str
    line: int
    at: int
    to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConf:
    """A file's text, what it sets by name in small letters, the files that it includes, and its faults."""

    text: str
    settings: Mapping[str, Setting]
    includes: tuple[str, ...]
    faults: tuple[Fault, ...]

    def value(self, name: str) -> str | None:
        """What is set; None where nothing is."""
        found = self.settings.get(name.lower())
        return (
            found.value if found is not None and found.value.lower() not in ("", "(null)") else None
        )

    def changed(self, values: Mapping[str, str]) -> str:
        """The text with some settings changed, those that were not there added at the end."""
        text = self.text
        there = [
            (self.settings[n.lower()], v) for n, v in values.items() if n.lower() in self.settings
        ]
        for setting, value in sorted(there, key=lambda each: -each[0].at):
            text = text[: setting.at] + value + text[setting.to :]
        added = [
            f"{name}={value}\n"
            for name, value in values.items()
            if name.lower() not in self.settings
        ]
        return (text if text.endswith("\n") or not text else text + "\n") + "".join(added)


def read_conf(text: str, file: str) -> SlurmConf:
    """The settings of a text; lines that cannot be read are faults."""
    settings: dict[str, Setting] = {}
    includes: list[str] = []
    faults: list[Fault] = []

    def fault(line: int, name: str, found: str, expected: str) -> None:
        faults.append(
            Fault(file=file, place=str(line), field=name, found=repr(found[:60]), expected=expected)
        )

    at, line, goes_on = 0, 0, False
    for raw in text.split("\n"):
        line += 1
        body = raw.partition("#")[0]
        words, begins, joined = body.strip(), at, goes_on
        goes_on = words.endswith("\\")
        at += len(raw) + 1
        if not words.rstrip("\\").strip():
            continue
        if words.lower().startswith("include ") and not joined:
            includes.append(words.split(None, 1)[1])
            continue
        left = _PAIR.sub("", body).strip().rstrip("\\").strip()
        if left and not _is_form(left):
            fault(line, "line", words, "Name=value, or Include FILE")
        for found in _PAIR.finditer(body):
            name = found["name"].lower()
            setting = Setting(
                name=found["name"], value=found["value"].strip('"'), line=line, at=begins + found.start("value"),
                to=begins + found.end("value"),
            )  # fmt: skip
            first = settings.setdefault(name, setting)
            if first is not setting and _alone(body, joined) and name not in _LISTS:
                fault(
                    line,
                    found["name"],
                    found[0],
                    f"one such line; it is set on line {first.line} too",
                )
    return SlurmConf(text=text, settings=settings, includes=tuple(includes), faults=tuple(faults))


def _is_form(left: str) -> bool:
    """Whether what is left of a line beside its pairs is only the sign for adding to a value."""
    return set(left) <= set("+-, ")


def _alone(body: str, joined: bool) -> bool:
    """Whether a pair stands on a line of its own: those behind NodeName=… set something of that node."""
    return not joined and len(_PAIR.findall(body)) == 1

"""What the watch of this machine knows right now, in one file that whoever asks can read.

Decides the shape of ``now.json`` in the agent's state directory: which probes looked when, what each check counts for
now, how much was dropped. It is replaced whole after each round and never edited, so that a reader sees one round and
not two halves. It is a view: the facts are in the spool, and nothing is decided from this file alone. Whether it is
still fresh is the heartbeat's to say.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.ledger.kinds import from_plain
from ouvrage.model.health import VERDICTS
from ouvrage.model.work import Named

FILE = "now.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeNow:
    """One probe: how often it looks (whole seconds), when it last did (UTC, None: not yet) and how long it took.

    ``fault`` says why its last look brought nothing: it hung, crashed, was refused; None where it answered.
    """

    name: str
    interval_s: int
    last_us: int | None
    fault: str | None
    took_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckNow:
    """One check on the node (``device`` None) or on a device: the verdict that counts now, after debounce and latch.

    ``since_us`` is UTC: when it began to count. ``latched``: it stays until it is verified. ``shadow``: its rule is on
    trial, and ``verdict`` is what it would have said.
    """

    check: str
    device: str | None
    verdict: str
    code: str
    action: str
    since_us: int
    latched: bool
    shadow: bool
    reasons: tuple[str, ...]
    evidence: tuple[Named, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """What a full disk cost since the agent began: telemetry first, facts only when nothing else is left."""

    telemetry: int = 0
    facts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The whole view of one round. ``at_us`` is UTC, ``monotonic_us`` since ``boot``; ``observer``: a marketplace's
    machine, on which nothing is ever touched. ``epoch`` is the fencing epoch that the verdicts knew.
    """

    node: str
    boot: str
    at_us: int
    monotonic_us: int
    epoch: int
    observer: bool
    probes: tuple[ProbeNow, ...]
    checks: tuple[CheckNow, ...]
    dropped: Dropped = Dropped()


def now_json(now: Now) -> dict[str, Any]:
    """The file's content: probes by their names, everything else as it is called here."""
    value = asdict(now)
    value["probes"] = {
        each.pop("name"): each for each in value["probes"]
    }  # a reader asks for one by its name
    return value


def now_from(value: dict[str, Any]) -> Now:
    """The view in a file's content. Raises ``KeyError``, ``TypeError``, ``ValueError`` or ``AttributeError`` for another
    shape.
    """
    probes = [{"name": name, **told} for name, told in value["probes"].items()]
    now: Now = from_plain(Now, {**value, "probes": probes})
    odd = [each.verdict for each in now.checks if each.verdict not in VERDICTS]
    if odd:
        raise ValueError(f"{odd[0]} is no verdict")
    return now


def write_now(state: Path, now: Now) -> None:
    """Replace the view. It need not outlast a power cut, so nothing is forced to the disk. Raises ``OSError``."""
    draft = state / f".{FILE}.{os.getpid()}"
    text = json.dumps(now_json(now), ensure_ascii=False, separators=(",", ":"))
    try:
        draft.write_text(text, "utf-8")
        draft.chmod(0o644)
        draft.replace(state / FILE)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def read_now(state: Path) -> Now | None:
    """The last view, None where no agent has looked yet. Raises ``OuvrageError`` where the file is no view."""
    path = state / FILE
    try:
        return now_from(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise OuvrageError(
            "agent/now",
            f"{path} is not the view of an agent: {type(error).__name__}: {error}"[:300],
            hint="ouvrage agent run writes it anew",
        ) from error

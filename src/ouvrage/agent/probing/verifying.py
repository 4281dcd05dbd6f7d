"""Word to a running watch: a part was repaired and is to be looked at anew; this is the fencing epoch now.

Decides the form: files in the agent's directory, written by whoever repaired or by what the server answered. Nothing is
opened by the word itself; only a look that finds the part well opens a latch. A verdict names the epoch that it knew,
so that one decided before a repair moves nothing after it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ouvrage.adapters.clock import monotonic_us, new_id
from ouvrage.base.time import MINUTE
from ouvrage.store.samples import write_whole

DIRECTORY, EPOCH, HANDS_OFF = "verify", "epoch", "hands-off"
_HANDS_OFF_US = 5 * MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """``device`` was repaired, or the whole machine where it is None; ``gone``: it was taken out."""

    device: str | None
    gone: bool = False


def ask_to_verify(state: Path, device: str | None, *, gone: bool = False) -> None:
    """Ask the watch of a state directory to look at a part anew; done again it does no harm. Raises ``OSError``."""
    text = json.dumps({"device": device, "gone": gone}) + "\n"
    write_whole(state / DIRECTORY / f"{new_id()}.json", text.encode())


def taken(state: Path) -> list[Verify]:
    """What was asked for since the last time; it is asked for no more."""
    found: list[Verify] = []
    with suppress(FileNotFoundError):
        for path in sorted((state / DIRECTORY).glob("*.json")):
            with suppress(OSError, ValueError, RecursionError):
                text = path.read_bytes()
                path.unlink()  # where it cannot be, it would be asked for again and again
                told = json.loads(text)
                if isinstance(told, dict) and isinstance(told.get("device", 0), str | None):
                    found.append(Verify(device=told["device"], gone=told.get("gone") is True))
    return found


def keep_epoch(state: Path, epoch: int) -> None:
    """Keep the epoch that verdicts are to name from now on."""
    if epoch_in(state) != epoch:
        write_whole(state / EPOCH, f"{epoch}\n".encode())


def epoch_in(state: Path) -> int:
    """The epoch that was kept last; 0 before the first."""
    with suppress(OSError, ValueError):
        return int((state / EPOCH).read_text("ascii"))
    return 0


def keep_hands_off(state: Path, on: bool) -> None:
    """Have our own probes let go of the driver while a GPU is reset, for some minutes at most; or begin again."""
    if on:
        write_whole(state / HANDS_OFF, f"{monotonic_us() + _HANDS_OFF_US}\n".encode())
    else:
        (state / HANDS_OFF).unlink(missing_ok=True)


def hands_off(state: Path, now_us: int) -> bool:
    """Whether nothing may touch the driver at this moment since boot; what a boot that is over said is not heard."""
    with suppress(OSError, ValueError):
        until = int((state / HANDS_OFF).read_text("ascii"))
        return now_us < until <= now_us + 2 * _HANDS_OFF_US
    return False

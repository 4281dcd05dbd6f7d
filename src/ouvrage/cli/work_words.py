"""How machines, offers, leases and jobs are put into words for a terminal.

Decides what a line shows of each; figures and reasons come from the server as they are.
"""

from __future__ import annotations

from typing import Any

from ouvrage.base.time import utc_text
from ouvrage.pricing.words import duration


def counted(number: int, what: str, none: str = "No") -> str:
    """``3 jobs``, ``1 job``, ``No jobs``."""
    return f"{number or none} {what}" + ("" if number == 1 else "s")


def size(mebibytes: int) -> str:
    """``16 GiB``, ``512 MiB``."""
    whole = mebibytes >= 1024 and mebibytes % 1024 == 0
    return f"{mebibytes // 1024} GiB" if whole else f"{mebibytes} MiB"


def configuration(told: Any) -> str:
    """What an offer or lease holds: ``2 × RTX 4090, 8 cores, 32 GiB``."""
    gpus = f"{told['gpus']} × {told.get('gpu') or 'GPU'}, " if told["gpus"] else ""
    cores = f"{told['cpus']} core" + ("" if told["cpus"] == 1 else "s")
    return f"{gpus}{cores}, {size(told['memory_mib'])}, {size(told['disk_mib'])} scratch"


def price(offer: Any, plain: bool) -> str:
    """What an offer costs per hour, with its grade: a published price is listed."""
    if offer["rate"] is None:
        return f"by plan {offer['plan']}"
    return f"{offer['rate']} {offer['currency']}/h{' (listed)' if plain else ' ○'}"


def lasted(us: int | None) -> str:
    """A length of time, or a dash where none is known yet."""
    return "–" if us is None else duration(us)


def moment(us: int | None) -> str:
    """A moment to the second, or a dash."""
    return "–" if us is None else f"{utc_text(us)[:19]}Z"


def ran_us(attempt: Any, now_us: int) -> int | None:
    """For how long an attempt has run; None where it hasn't begun."""
    if attempt is None or attempt["began_us"] is None:
        return None
    if attempt["wall_us"] is not None:
        return int(attempt["wall_us"])
    return max(0, now_us - int(attempt["began_us"]))


def units(attempt: Any) -> str:
    """``12 epochs``, as far as the meter has told."""
    if attempt is None or not attempt["units"]:
        return ""
    name = attempt["unit"] or "unit"
    return f"{attempt['units']} {name}" + ("" if attempt["units"] == 1 else "s")


def bounds(offer: Any) -> str:
    """How long an offer is leased for."""
    least, most = offer["least_us"], offer["most_us"]
    if least is None and most is None:
        return "any time"
    words = [f"at least {duration(least)}"] if least else []
    return " and ".join([*words, *([f"at most {duration(most)}"] if most else [])])

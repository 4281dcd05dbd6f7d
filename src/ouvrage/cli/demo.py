"""``ouvrage demo``: a made-up owner's year in a home of its own, to try every command on.

Decides where that home is, that nobody's own books are touched, and that all of it is of grade
``simulated``. The same seed again changes nothing; another seed needs another home.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from ouvrage.adapters.home import home
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.booking import Booked, book
from ouvrage.cli.ledger import opened
from ouvrage.cli.options import json_option, plain_option
from ouvrage.cli.output import say_json, say_text, write_file
from ouvrage.ledger.stated import Stated
from ouvrage.planning.simulated_owner import NODE, SITE, simulated_owner
from ouvrage.planning.simulated_world import DEMO, FIRST, GPUS, date_of

SEED = 1
_SEED_FILE = "demo-seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The demonstration's home, its seed, and what became of its statements."""

    home: Path
    seed: int
    booked: Booked
    events: tuple[str, ...]


@click.command()
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Another year; else 1.")
@click.option(
    "--state",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Its home; else beside your own, with -demo at the end of its name.",
)
@click.option("--show", is_flag=True, help="Show its year: a statement, a bridge, a decision.")
@click.option(
    "--into",
    metavar="FILE",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="With --show: put the bridge into this page, which ouvrage wrote.",
)
@json_option
@plain_option
def demo(
    seed: int | None,
    state: Path | None,
    show: bool,
    into: Path | None,
    as_json: bool,
    plain: bool,
) -> None:
    """Make a made-up owner's year with four GPUs, in a home of its own, to try the books on.

    Two channels, a summer of dear power, a failed GPU, competitors who cut their price, a tenant who
    leaves. Every figure made from it is marked as simulated. Your own books are not touched.
    """
    if into is not None and not show:
        raise OuvrageError(
            "demo/into", "--into goes with --show", hint="ouvrage demo --show --into FILE"
        )
    made = make_demo(state or _beside(), seed)
    if show:
        _show(made, into, plain)
    elif as_json:
        say_json({"home": str(made.home), "seed": made.seed, "site": SITE, "node": NODE,
                  "new": made.booked.new, "same": made.booked.same, "grade": "simulated"})  # fmt: skip
    else:
        say_text("\n".join(_told(made)))


def _beside() -> Path:
    """The home beside the person's own."""
    own = home()
    return own.with_name(f"{own.name}-demo")


def make_demo(where: Path, seed: int | None) -> Made:
    """Make the demonstration in a directory, or find it made. Raises ``OuvrageError`` ``demo/...``."""
    where = where.absolute()
    if where.resolve() == home().resolve():
        raise OuvrageError(
            "demo/own-home", f"{where} is your own home, which the demonstration must not touch",
            hint="ouvrage demo --state ANOTHER-DIRECTORY",
        )  # fmt: skip
    chosen = _seed_in(where, seed)
    facts = simulated_owner(DEMO, chosen)
    booked = _recorded(where, facts)
    (where / _SEED_FILE).write_text(f"{chosen}\n", "ascii")
    return Made(home=where, seed=chosen, booked=booked, events=_events())


def _seed_in(where: Path, seed: int | None) -> int:
    """The seed of a home: the one asked for, if nothing else is there."""
    file = where / _SEED_FILE
    if file.is_file():
        held = int(file.read_text("ascii"))
        if seed is not None and seed != held:
            raise OuvrageError(
                "demo/seed", f"{where} holds the year of seed {held}, not of {seed}",
                hint=f"ouvrage demo --seed {seed} --state ANOTHER-DIRECTORY",
            )  # fmt: skip
        return held
    if (where / "ouvrage.db").exists():
        raise OuvrageError(
            "demo/not-empty", f"{where} holds a ledger that is not the demonstration's",
            hint="ouvrage demo --state A-NEW-DIRECTORY",
        )  # fmt: skip
    return SEED if seed is None else seed


def _recorded(where: Path, facts: list[Stated]) -> Booked:
    """Record statements in a home other than the one of the environment."""
    with at_home(where), opened() as ledger:
        return book(ledger, facts)


@contextmanager
def at_home(where: Path) -> Iterator[None]:
    """Another home in place of the environment's, as long as it lasts."""
    before = {name: os.environ.pop(name, None) for name in ("OUVRAGE_HOME", "OUVRAGE_STORE")}
    os.environ["OUVRAGE_HOME"] = str(where)
    try:
        yield
    finally:
        del os.environ["OUVRAGE_HOME"]
        os.environ.update({name: value for name, value in before.items() if value is not None})


def _show(made: Made, into: Path | None, plain: bool) -> None:
    """The year in one screen, and its bridge in a page."""
    from ouvrage.cli.demo_show import KEY, shown
    from ouvrage.console.page import check_ours, with_section

    before = None if into is None else check_ours(into.read_text("utf-8"))
    with at_home(made.home):
        found = shown(plain)
    say_text("\n".join(found.lines))
    if into is not None and before is not None:
        document = with_section(before, KEY, found.drawing, "\n".join(found.lines))
        write_file(into, document)


def _events() -> tuple[str, ...]:
    """What happens in the year, in order."""
    world = DEMO
    return (
        f"June to August: a kilowatt-hour costs {float(world.summer_kwh):.2f} EUR, else {float(world.kwh):.2f}",
        f"{date_of(world.fail_day)}: a GPU fails and is replaced {world.down_days} days later",
        f"{date_of(world.cut_day)}: competitors cut their price by {round(world.cut * 100)} %",
        f"{date_of(world.leaves_day)}: the tenant leaves who had {world.anchors} GPUs since January",
    )


def _told(made: Made) -> list[str]:
    """What was made, what happens in it, how to look at it."""
    place = shlex.quote(str(made.home))
    state = "is ready" if made.booked.new else "was there already"
    return [
        f"A simulated year of an owner with {GPUS} GPUs {state} in {made.home}: {made.booked.words}.",
        "",
        *(f"  {event}" for event in made.events),
        "",
        "  Nobody's figures: all of it is made up, and marked ◌ (simulated) wherever it is shown.",
        "",
        "Look at it:",
        f"  export OUVRAGE_HOME={place}",
        f"  ouvrage books pnl --year {FIRST.year}",
        f"  ouvrage books pnl --by channel --month {FIRST.year}-11",
        f"  ouvrage books calendar --month {FIRST.year}-07",
        f"  ouvrage plan decide --node {NODE}",
    ]

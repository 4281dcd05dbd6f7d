"""``ouvrage node patch``: what waits to be updated, the plan before anything is touched, and what changed in the end.

Decides where what stands on a machine is asked: of the platform's server where one is named, else of the owner's own
statements. Nothing is installed, held or released here: the plan says what to do, a person or their tool does it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ouvrage.adapters.clock import new_id, now_us
from ouvrage.adapters.health_sources import NotTold
from ouvrage.adapters.packages import Installed, installed, simulated_upgrade
from ouvrage.adapters.toml_text import read_text
from ouvrage.agent.parts import Kept, agent_dir, inventory_now, keep, kept
from ouvrage.base.errors import OuvrageError
from ouvrage.base.grades import Grade
from ouvrage.base.ids import code_of
from ouvrage.cli.book_ledger import books_of
from ouvrage.cli.ledger import opened
from ouvrage.cli.node_inventory import (
    inventories,
    meant,
    patches,
    record,
    root_option,
    roots_of,
    state_option,
    who,
)
from ouvrage.cli.options import json_option, moment
from ouvrage.cli.output import say_json, say_text, shortened, table
from ouvrage.cli.talking import talk
from ouvrage.cli.work_words import moment as said_moment
from ouvrage.health.parts import changes
from ouvrage.health.patching import (
    Drain,
    Guard,
    accepted_software,
    drain_of,
    guards,
    pending,
    will_change,
)
from ouvrage.ledger.kinds import payload_of
from ouvrage.model.builds import PatchPlan, Standing, Update

_SHOWN = 20


def _updates_option(verb: Any) -> Any:
    return click.option(
        "--updates",
        "file",
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="What apt-get --simulate --ignore-hold dist-upgrade printed, in place of asking it.",
    )(verb)


@click.group()
def patch() -> None:
    """Planned patching: what waits, who has to be gone first, and what changed.

    \b
    ouvrage node patch pending
    ouvrage node patch plan --from 2026-12-06T02:00:00Z --to 2026-12-06T04:00:00Z --why "kernel"
    ouvrage node patch done
    """


def _software(root: str | None, file: Path | None) -> tuple[Installed, tuple[Update, ...]]:
    """What is installed and what waits. Raises ``OuvrageError`` ``patch/packages`` where neither is told."""
    roots = roots_of(root)
    if file is None and not roots.are_here:
        raise OuvrageError(
            "patch/updates", "what waits on another machine is not known here",
            hint="there: apt-get --simulate --ignore-hold dist-upgrade > FILE; here: --updates FILE",
        )  # fmt: skip
    try:
        there = installed(roots.var)
        text = simulated_upgrade() if file is None else read_text(file, "patch")
    except NotTold as error:
        raise OuvrageError("patch/packages", str(error)) from error
    return there, pending(text, there.held)


@patch.command("pending")
@click.argument("node", required=False)
@_updates_option
@root_option
@json_option
def pending_(node: str | None, file: Path | None, root: str | None, as_json: bool) -> int:
    """Updates that wait, security first, and whether driver, kernel and runtimes are held. Nothing is recorded.

    The exit code is 1 where a security update waits or one of those packages is not held.
    """
    name, _ = meant(node, root)
    there, updates = _software(root, file)
    kept_back = guards(there.packages, there.held)
    loose = [each for each in kept_back if not each.held]
    security = [each for each in updates if each.security]
    if as_json:
        say_json(_pending_json(name, updates, kept_back))
    else:
        lines = [
            f"{name}: {len(security)} security update{' waits' if len(security) == 1 else 's wait'}, "
            f"{len(updates)} in all; {len(loose)} of {len(kept_back)} packages that work runs on are not held",
            *_updates_table(updates),
            *_guards_table(kept_back),
            "",
            "hold them    apt-mark hold NAME…      plan it: ouvrage node patch plan --from TIME --to TIME",
        ]
        say_text("\n".join(lines))
    return int(bool(security or loose))


def _pending_json(
    name: str, updates: Sequence[Update], kept_back: Sequence[Guard]
) -> dict[str, Any]:
    fields = ("package", "group", "version", "held")
    return {
        "node": name,
        "updates": [json.loads(payload_of(each)) for each in updates],
        "guarded": [{field: getattr(each, field) for field in fields} for each in kept_back],
    }


def _updates_table(updates: Sequence[Update]) -> list[str]:
    rows = [
        (
            each.package,
            each.from_version or "–",
            each.to_version,
            "security" if each.security else "",
            "held" if each.held else "",
        )
        for each in updates[:_SHOWN]
    ]
    more = [f"and {len(updates) - _SHOWN} more: --json"] if len(updates) > _SHOWN else []
    return ["", table(("update", "from", "to", "", ""), rows, "<<<<<"), *more] if rows else []


def _guards_table(kept_back: Sequence[Guard]) -> list[str]:
    rows = [
        (each.group, each.package, shortened(each.version, 40), "held" if each.held else "not held")
        for each in kept_back
    ]
    return ["", table(("runs under work", "package", "version", ""), rows, "<<<<")] if rows else []


@patch.command()
@click.argument("node", required=False)
@click.option("--from", "begins", metavar="TIME", required=True, help="When the window begins.")
@click.option("--to", "ends", metavar="TIME", required=True, help="When it ends.")
@click.option(
    "--lift",
    metavar="PACKAGE",
    multiple=True,
    help="A held package that is to change all the same.",
)
@click.option("--why", metavar="TEXT", required=True, help="What is changed, and why.")
@_updates_option
@root_option
@json_option
def plan(
    node: str | None,
    begins: str,
    ends: str,
    lift: tuple[str, ...],
    why: str,
    file: Path | None,
    root: str | None,
    as_json: bool,
) -> int:
    """Write down, before anything is touched, what will change, what stands on the machine and when that ends.

    Leases are asked of the server that OUVRAGE_URL names, or else of your own statements. The exit code is 1 where
    something stands in the way of the window.
    """  # fmt: skip
    name, _ = meant(node, root)
    from_us, to_us = moment(begins), moment(ends)
    if to_us <= from_us:
        raise OuvrageError(
            "patch/window", "the window ends before it begins", hint="--from TIME --to TIME"
        )
    there, updates = _software(root, file)
    unknown = sorted(set(lift) - set(there.held))
    if unknown:
        raise OuvrageError(
            "patch/lift", f"{', '.join(unknown)}: not held, so there is no hold to lift",
            hint=f"held are {', '.join(there.held) or 'none'}",
        )  # fmt: skip
    value = PatchPlan(
        plan=new_id(), node=name, begins_us=from_us, ends_us=to_us, updates=updates, lift=lift,
        standing=tuple(_standing(name, to_us)), why=why, by=who(),
    )  # fmt: skip
    with opened() as ledger:
        record(ledger, value, Grade.REPORTED)
    drain = drain_of(value, now_us())
    if as_json:
        say_json(_plan_json(value, drain))
    else:
        say_text(_plan_words(value, drain, platform=bool(os.environ.get("OUVRAGE_URL"))))
    return 0 if drain.clear else 1


def _standing(node: str, until_us: int) -> Iterator[Standing]:
    """What stands on a node before a moment: by the server's word, or by the owner's."""
    if os.environ.get("OUVRAGE_URL"):
        yield from _on_the_platform(node)
    else:
        yield from _stated_leases(node, until_us)


def _on_the_platform(node: str) -> Iterator[Standing]:
    with talk() as server:
        id = server.get(f"/v1/nodes/{node}")["node"]
        for lease in server.every("/v1/leases", open=True):
            if lease["node"] == id:
                yield Standing(
                    sort="job" if lease["kind"] == "job" else "lease", name=lease["code"],
                    whose=lease["project_name"], ends_us=lease["until_us"],
                )  # fmt: skip


def _stated_leases(node: str, until_us: int) -> Iterator[Standing]:
    now = now_us()
    with opened() as ledger:
        owner = books_of(ledger, None).record
    devices = {f"device:{each.value.device}" for each in owner.inside.get(node, ())}
    for each in owner.leases:
        open_ended = each.valid_to is None or each.valid_to > now
        if (
            each.value.about in {f"node:{node}", *devices}
            and each.valid_from < until_us
            and open_ended
        ):
            yield Standing(
                sort="lease", name=each.value.lease, whose=each.value.tenant, ends_us=each.valid_to
            )  # fmt: skip


def _plan_json(value: PatchPlan, drain: Drain) -> dict[str, Any]:
    return {
        **json.loads(payload_of(value)),
        "clear": drain.clear,
        "empty_us": drain.empty_us,
        "in_the_way": [json.loads(payload_of(each)) for each in drain.in_the_way],
        "will_change": [each.package for each in will_change(value)],
    }


def _plan_words(value: PatchPlan, drain: Drain, *, platform: bool) -> str:
    window = f"{said_moment(value.begins_us)} to {said_moment(value.ends_us)}"
    if drain.clear:
        first = f"{value.node} can be patched from {window}: nothing stands on it by then"
    else:
        many = len(drain.in_the_way)
        first = f"{value.node} is not empty by {said_moment(value.begins_us)}: {many} in the way of the window"
    changing = will_change(value)
    lines = [f"{first} (plan {code_of(value.plan)})", "", *_standing_table(value, drain)]
    asked = "the server" if platform else "your own statements"
    lines.append(f"leases       asked of {asked}")
    lines += [
        f"step {number}       {words}"
        for number, words in enumerate(_steps(value, drain, platform), 1)
    ]
    lines += _updates_table(changing)
    lines += ["", "more         --json; when it is done: ouvrage node patch done"]
    return "\n".join(lines)


def _standing_table(value: PatchPlan, drain: Drain) -> list[str]:
    rows = [
        (
            each.sort,
            each.name,
            shortened(each.whose, 30),
            said_moment(each.ends_us) if each.ends_us is not None else "no end is known",
            "in the way" if each in drain.in_the_way else "ends in time",
        )
        for each in value.standing
    ]
    if not rows:
        return ["nothing stands on it", ""]
    return [table(("", "name", "whose", "ends", ""), rows, "<<<<<"), ""]


def _steps(value: PatchPlan, drain: Drain, platform: bool) -> Iterator[str]:
    """What to do, in order; nothing of it has been done."""
    why, begins = f"--why {code_of(value.plan)}", said_moment(value.begins_us)
    how = f": ouvrage node unlist {value.node} {why}" if platform else f" of {value.node}"
    yield f"take no new leases{how}"
    for each in drain.in_the_way:
        yield f"agree with {each.whose} on an end of {each.sort} {each.name}, or choose another window"
    yield f"at {begins}: " + (
        f"ouvrage node fence {value.node} {why}" if platform else "see that nothing runs on it"
    )
    if value.lift:
        yield f"apt-mark unhold {' '.join(value.lift)}"
    changing = len(will_change(value))
    yield f"install {changing} update{'' if changing == 1 else 's'}, then reboot where kernel or driver changed"
    if value.lift:
        yield f"apt-mark hold {' '.join(value.lift)}"
    yield "ouvrage node patch done, ouvrage check all"
    if platform:
        yield f"ouvrage node unfence {value.node}, ouvrage node relist {value.node}"


@patch.command()
@click.argument("node", required=False)
@root_option
@state_option
@json_option
def done(node: str | None, root: str | None, state: Path | None, as_json: bool) -> None:
    """What changed since the last inventory: each version as a fact, planned where a plan's window holds it.

    Those versions are accepted; a part that changed is not, and stays a warning.
    """
    name, read_now = meant(node, root)
    if not read_now:
        raise OuvrageError("patch/where", f"{name} is not this machine", hint="run it there")
    place = state or agent_dir()
    now = inventory_now(name, roots_of(root))
    known = kept(place, name)
    with opened() as ledger:
        before = known.accepted if known is not None else _last(inventories(ledger, name))
        if before is None:
            raise OuvrageError(
                "inventory/none", f"no inventory of {name} from before is on record",
                hint="ouvrage node inventory, before the next patch",
            )  # fmt: skip
        facts = patches(ledger, before, now)
        grade = Grade.REPORTED if root else Grade.MEASURED
        for value in (*facts, *([now] if facts else ())):
            record(ledger, value, grade)
    left = changes(accepted := accepted_software(before, now), now)
    keep(place, Kept(accepted=accepted, last=now))
    if as_json:
        rows = [json.loads(payload_of(each)) for each in facts]
        say_json({"node": name, "patched": rows, "left": [each.words for each in left]})
        return
    planned = sum(each.planned for each in facts)
    many = f"{len(facts)} version{'' if len(facts) == 1 else 's'}"
    rows_text = [
        (each.what, each.from_version or "–", each.to_version or "–", "planned" if each.planned else "not planned")
        for each in facts
    ]  # fmt: skip
    lines = [f"{name}: {many} changed, {planned} of them planned"]
    if rows_text:
        lines += ["", table(("what", "from", "to", ""), rows_text, "<<<<"), ""]
    lines += [f"not accepted {shortened(each.words, 140)}" for each in left]
    lines.append("more         ouvrage node inventory; hold it to a build: ouvrage node compare")
    say_text("\n".join(lines))


def _last(found: Sequence[tuple[Any, Any]]) -> Any:
    return found[-1][1] if found else None

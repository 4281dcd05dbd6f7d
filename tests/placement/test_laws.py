"""What must hold of every plan, over drawn snapshots, reckoned here by other means than the product's."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.model.selling import Placed
from ouvrage.placement.decide import Planning, grant, plan
from ouvrage.placement.explain import explain
from ouvrage.placement.order import own_order
from ouvrage.placement.places import model_name
from ouvrage.placement.preempt import victims_of
from ouvrage.placement.snapshot import Lease, Needs, Node, Running, Snapshot, Waiting
from ouvrage.placement.why import WORDS
from tests.placement.worlds import NOW, needs_drawn, snapshots

FAR = 2**62
MANY = settings(max_examples=300, deadline=None)


def _holders(
    snapshot: Snapshot, starts: Iterable[tuple[Placed, int | None]]
) -> list[tuple[Placed, int | None]]:
    """Everything that takes something of a node by itself, and by when it has gone."""
    terms = {lease.lease for lease in snapshot.leases}
    soon = NOW + snapshot.policy.turnover_us
    held = [(lease.placed, _gone(lease, lease.until_us, soon)) for lease in snapshot.leases]
    held += [
        (run.placed, _gone(run, run.ends_by_us, soon))
        for run in snapshot.running
        if run.lease not in terms
    ]
    return [*held, *starts]


def _gone(what: Running | Lease, by: int | None, soon: int) -> int | None:
    if what.stopping:
        return min(soon + what.notice_us, by if by is not None and by > NOW else FAR)
    return soon if by is not None and by <= NOW else by


def _fits(on: Node, held: list[Placed], needs: Needs) -> bool:
    here = [each for each in held if each.node == on.node]
    taken = {d for each in here for d in each.devices}
    free = Counter(
        model_name(d.model, d.memory_mib)
        for d in on.devices
        if not d.fenced and d.device not in taken
    )
    most = max(free.values(), default=0)
    gpus = most if needs.gpu is None else free[model_name(needs.gpu)]
    return (
        gpus >= needs.gpus
        and len(set(on.cpus) - {c for each in here for c in each.cpus}) >= needs.cpus
        and on.memory_mib - sum(each.memory_mib for each in here) >= needs.memory_mib
        and on.disk_mib - sum(each.disk_mib for each in here) >= needs.disk_mib
    )


def _stays(snapshot: Snapshot, limit: int | None, grace: int) -> int:
    """How long something keeps its place at most."""
    return FAR if limit is None else limit + grace + snapshot.policy.turnover_us


def _earliest(snapshot: Snapshot, job: Waiting, held: list[tuple[Placed, int | None]]) -> int:
    """From when a job can start somewhere, if everything lasts as long as it may."""
    over = {to for on in snapshot.nodes for _, to in on.windows if to > NOW}
    moments = sorted({NOW, *over, *(by for _, by in held if by is not None)})
    stays = _stays(snapshot, job.time_limit_us, job.grace_us)
    for at in moments:
        there = [where for where, by in held if by is None or by > at]
        for on in snapshot.nodes:
            open_to = (
                on.listed
                and not on.fenced
                and on.node not in job.not_on
                and job.needs.isolation in on.isolations
                and not any(at < to and at + stays > begins for begins, to in on.windows)
            )
            if open_to and _fits(on, there, job.needs):
                return at
    return FAR


@MANY
@given(snapshots())
def test_nothing_is_given_out_twice_and_nothing_beyond_what_there_is(snapshot: Snapshot) -> None:
    made = plan(snapshot, NOW)
    open_starts = [(s.placed, s.by_us) for s in made.starts if s.lease is None]
    held = [where for where, _ in _holders(snapshot, open_starts)]
    for on in snapshot.nodes:
        here = [each for each in held if each.node == on.node]
        devices = Counter(d for each in here for d in each.devices)
        cpus = Counter(c for each in here for c in each.cpus)
        assert not [d for d, n in devices.items() if n > 1]
        assert not [c for c, n in cpus.items() if n > 1]
        assert sum(each.memory_mib for each in here) <= on.memory_mib
        assert sum(each.disk_mib for each in here) <= on.disk_mib
    jobs = {each.job: each for each in snapshot.waiting}
    nodes = {each.node: each for each in snapshot.nodes}
    for start in made.starts:
        job, on = jobs[start.job], nodes[start.placed.node]
        devices = [d for d in on.devices if d.device in start.placed.devices]
        assert len(devices) == job.needs.gpus
        assert len({d.model for d in devices}) <= 1
        assert not any(d.fenced for d in devices)
        assert set(start.placed.cpus) <= set(on.cpus)
        assert len(start.placed.cpus) == job.needs.cpus
        assert not on.fenced
        assert on.listed or start.lease
        assert on.node not in job.not_on
        assert job.needs.isolation in on.isolations
        assert not job.holds
        assert job.not_before_us <= NOW
        gone = start.by_us or FAR
        assert not any(to > NOW and gone > begins for begins, to in on.windows)


@MANY
@given(snapshots())
def test_each_waiting_job_starts_or_has_one_reason(snapshot: Snapshot) -> None:
    made = plan(snapshot, NOW)
    told = [s.job for s in made.starts] + [w.job for w in made.waits]
    assert sorted(told) == sorted(j.job for j in snapshot.waiting)
    for why in made.waits:
        assert why.code in WORDS
        assert why.words
        assert why.as_json(owner=True)["words"] == why.words
        if "node" in why.owner:
            assert why.owner["node"] not in why.words


@MANY
@given(snapshots(), st.integers(0, 2**40))
def test_the_order_of_what_is_told_does_not_matter(snapshot: Snapshot, seed: int) -> None:
    chance = Random(seed)

    def mixed(items):
        return tuple(chance.sample(items, len(items)))

    other = replace(
        snapshot,
        nodes=tuple(
            replace(n, devices=mixed(n.devices), cpus=mixed(n.cpus)) for n in mixed(snapshot.nodes)
        ),
        leases=mixed(snapshot.leases),
        running=mixed(snapshot.running),
        waiting=mixed(snapshot.waiting),
        shares=mixed(snapshot.shares),
    )
    assert plan(other, NOW) == plan(snapshot, NOW) == plan(snapshot, NOW)


@MANY
@given(snapshots())
def test_nothing_out_of_turn_makes_the_first_job_later(snapshot: Snapshot) -> None:
    planning = Planning(snapshot, NOW)
    made = planning.plan()
    if not planning.blocked:
        return
    head = planning.blocked[0].job
    starts = [s for s in made.starts if s.lease is None]
    before = [(s.placed, s.by_us) for s in starts if s.why.startswith("next")]
    after = [(s.placed, s.by_us) for s in starts]
    was = _earliest(snapshot, head, _holders(snapshot, before))
    now = _earliest(snapshot, head, _holders(snapshot, after))
    why = next(w for w in made.waits if w.job == head.job)
    if why.code == "placement/notice":  # it gets what is interrupted for it, and sooner
        assert why.detail["by"] < was
    else:
        assert now <= was
        assert (why.detail["by"] or FAR) == was


@MANY
@given(snapshots())
def test_every_kept_place_is_as_good_as_it_was_said_to_be(snapshot: Snapshot) -> None:
    planning = Planning(snapshot, NOW)
    made = planning.plan()
    held = _holders(snapshot, [(s.placed, s.by_us) for s in made.starts if s.lease is None])
    leaving = {p.attempt or p.lease for p in made.preempt}
    terms = {lease.lease: lease.placed for lease in snapshot.leases}
    gone = [terms[p.lease] for p in made.preempt if p.attempt is None]
    gone += [r.placed for r in snapshot.running if r.attempt in leaving]
    for kept in planning.promises.values():
        if kept.at_us is not None:
            there = [w for w, by in held if w not in gone and (by is None or by > kept.at_us)]
            assert _fits(kept.room.node, there, kept.job.needs)
    assert len({kept.room.node.node for kept in planning.promises.values()}) == len(
        planning.promises
    )


@MANY
@given(snapshots())
def test_with_no_end_known_nothing_the_first_job_needs_is_taken(snapshot: Snapshot) -> None:
    """Whichever of what runs ends first: if the job then fitted without those out of turn, it fits with them."""
    planning = Planning(snapshot, NOW)
    made = planning.plan()
    for kept in planning.promises.values():
        if kept.at_us is not None:
            continue
        on = kept.room.node
        here = [w for w, _ in _holders(snapshot, []) if w.node == on.node]
        starts = [s for s in made.starts if s.lease is None and s.placed.node == on.node]
        place = next(n for n, b in enumerate(planning.blocked) if b.job.job == kept.job.job)
        early = [s.placed for s in starts if _blocked_before(s.why) <= place]
        late = [s.placed for s in starts if _blocked_before(s.why) > place]
        for count in range(len(here) + 1):
            for staying in itertools.combinations(here, count):
                if _fits(on, [*staying, *early], kept.job.needs):
                    assert _fits(on, [*staying, *early, *late], kept.job.needs)


def _blocked_before(why: str) -> int:
    return 0 if why.startswith("next") else int(why.split()[0])


@MANY
@given(snapshots())
def test_a_lease_s_own_queue_stays_in_the_lease_and_in_order(snapshot: Snapshot) -> None:
    made = plan(snapshot, NOW)
    started = {s.job: s for s in made.starts}
    reasons = {w.job: w.code for w in made.waits}
    for lease in snapshot.leases:
        line = sorted((j for j in snapshot.waiting if j.lease == lease.lease), key=own_order)
        inside = [r.placed for r in snapshot.running if r.lease == lease.lease]
        for job in line:
            if job.job in started:
                placed = started[job.job].placed
                assert started[job.job].lease == lease.lease
                assert set(placed.devices) <= set(lease.placed.devices)
                assert set(placed.cpus) <= set(lease.placed.cpus)
                inside.append(placed)
        assert sum(p.memory_mib for p in inside) <= lease.placed.memory_mib or len(inside) == 1
        assert max(Counter(d for p in inside for d in p.devices).values(), default=1) == 1
        waits = [
            n
            for n, j in enumerate(line)
            if reasons.get(j.job) in ("placement/lease-busy", "placement/lease-behind")
        ]
        starts = [n for n, j in enumerate(line) if j.job in started]
        if waits and starts:
            assert max(starts) < min(waits)
    assert all(
        s.lease is None
        for s in made.starts
        if s.job in {j.job for j in snapshot.waiting if not j.lease}
    )


@MANY
@given(snapshots())
def test_only_interruptible_work_of_lower_rank_is_interrupted_and_only_where_it_helps(
    snapshot: Snapshot,
) -> None:
    planning = Planning(snapshot, NOW)
    made = planning.plan()
    jobs = {j.job: j for j in snapshot.waiting}
    victims = {(v.attempt, v.lease): v for each in victims_of(snapshot).values() for v in each}
    runs = {r.attempt: r for r in snapshot.running}
    leases = {each.lease: each for each in snapshot.leases}
    for name, group in itertools.groupby(made.preempt, key=lambda p: p.for_job):
        asked, job = list(group), jobs[name]
        for each in asked:
            victim = victims[each.attempt, each.lease]
            lower = victim.standing < job.standing
            own = each.attempt is not None and victim.project == job.project
            assert lower or (
                own and victim.standing == job.standing and victim.priority < job.priority
            )
            assert each.notice_us == victim.notice_us
            source = runs[each.attempt] if each.attempt else leases[each.lease]
            assert source.interruptible
            assert not (each.attempt and runs[each.attempt].stopping)
        kept = planning.promises[name]
        places = [victims[p.attempt, p.lease].placed for p in asked]
        assert {p.node for p in places} == {kept.room.node.node}
        place = next(n for n, b in enumerate(planning.blocked) if b.job.job == name)
        starts = [s for s in made.starts if s.lease is None and _blocked_before(s.why) <= place]
        held = [w for w, _ in _holders(snapshot, [(s.placed, s.by_us) for s in starts])]
        for spared in places:  # each one is needed: with it still there the job would not fit now
            assert not _fits(
                kept.room.node, [w for w in held if w not in places or w == spared], job.needs
            )
    touched = [(p.attempt, p.lease) for p in made.preempt]
    assert len(touched) == len(set(touched))
    assert {w.job for w in made.waits if w.code == "placement/notice"} == {
        p.for_job for p in made.preempt
    }


@MANY
@given(snapshots(), needs_drawn(), st.sampled_from([None, NOW + 10 * 60_000_000, NOW + 10**12]))
def test_a_lease_is_granted_only_beside_what_waits(
    snapshot: Snapshot, needs: Needs, until: int | None
) -> None:
    answer = grant(snapshot, needs, until, NOW)
    planning = Planning(snapshot, NOW)
    made = planning.plan()
    if not isinstance(answer, Placed):
        assert answer.words
        return
    starts = [(s.placed, s.by_us) for s in made.starts if s.lease is None]
    held = _holders(snapshot, starts)
    on = next(n for n in snapshot.nodes if n.node == answer.node)
    assert _fits(on, [w for w, _ in held], needs)
    assert len(answer.devices) == needs.gpus
    if planning.blocked and not made.preempt:
        head = planning.blocked[0].job
        by = None if until is None else until + snapshot.policy.turnover_us
        was = _earliest(snapshot, head, held)
        assert _earliest(snapshot, head, [*held, (answer, by)]) <= was


@settings(max_examples=120, deadline=None)
@given(snapshots())
def test_an_explanation_says_what_the_plan_says(snapshot: Snapshot) -> None:
    made = plan(snapshot, NOW)
    reasons = {w.job: w for w in made.waits}
    for job in snapshot.waiting:
        told = explain(snapshot, job.job, NOW)
        assert told is not None
        assert told.starts == (job.job not in reasons)
        assert told.why == reasons.get(job.job)
        assert told.lines()
        assert told.latest_why
        as_data = told.as_json()
        assert "nodes" not in as_data
        for name in ("n0", "n1", "n2", "n3"):
            assert f"'{name}'" not in str(as_data)
        if (
            told.why
            and told.why.code.startswith("placement/waits-")
            and told.why.code != "placement/waits-together"
        ):
            resource = told.why.code.rpartition("-")[2]
            assert resource in {m.resource for m in told.missing}
            assert all(m.free < m.needed for m in told.missing)
            assert told.nodes
            assert all(n.lacks or n.kept for n in told.nodes)
    assert explain(snapshot, "nobody", NOW) is None

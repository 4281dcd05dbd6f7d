"""One job from the runs that bear its id: machines, stretches, units once, clocks and the straggler."""

from __future__ import annotations

from fractions import Fraction

from ouvrage.metering.jobs import Job, job_from, marks_apart
from ouvrage.metering.straggler import straggling
from tests.support.around import BOX_A, BOX_B, BOX_C, member, view
from tests.support.runs import S, samples

EPOCHS = (2.0, 3.0, 4.0, 5.0)


def made(*members: list[str], name: str = "train") -> Job:
    return job_from(name, [view(lines) for lines in members])


def rank(number: int, host: str, ends: tuple[float, ...] = EPOCHS, of: int = 4, **more):
    return member(number, host, ends=ends, rank=number - 1, ranks=of, **more)


def test_ranks_of_one_machine_take_its_time_once():
    job = made(rank(1, BOX_A, wall=10), rank(2, BOX_A, start=0.5, wall=10))
    (host,) = job.hosts
    assert (len(host.runs), len(host.stretches), host.length_us) == (2, 1, 10.5 * S)


def test_runs_that_do_not_overlap_are_stretches_of_their_own():
    job = made(member(1, BOX_A, wall=10), member(2, BOX_A, start=20, wall=5))
    (host,) = job.hosts
    assert (len(host.stretches), host.length_us) == (2, 15 * S)


def test_all_ranks_on_all_hosts_print_the_same_epoch_and_it_is_one():
    job = made(rank(1, BOX_A), rank(2, BOX_A), rank(3, BOX_B), rank(4, BOX_B))
    assert (job.units.name, job.units.finished) == ("epoch", 4)
    assert job.units.notes == ("4 runs marked the same epochs; each counts once",)


def test_a_host_that_ended_early_marked_a_part_of_them():
    job = made(rank(1, BOX_A), rank(2, BOX_B, ends=(2.0, 3.0), wall=4, exit_code=1))
    assert job.units.finished == 4


def test_ranks_that_say_nothing_are_no_units_of_their_own():
    job = made(rank(1, BOX_A), rank(2, BOX_B, ends=()))
    assert job.units.finished == 4


def test_without_a_launcher_all_work_counts_and_that_is_said():
    job = made(member(1, BOX_A, ends=EPOCHS), member(2, BOX_B, ends=EPOCHS))
    assert job.units.finished == 8
    assert "all count" in job.units.notes[0]


def test_a_job_without_marks_is_itself_the_unit():
    job = made(rank(1, BOX_A, ends=()), rank(2, BOX_B, ends=()))
    assert (job.units.name, job.units.finished) == ("job", 1)
    failed = made(rank(1, BOX_A, ends=()), rank(2, BOX_B, ends=(), exit_code=1))
    assert failed.units.finished == 0


def test_units_done_again_after_a_restart_count_once():
    first = rank(1, BOX_A, ends=(2, 3, 4), wall=6, restart=0, exit_code=1)
    again = rank(2, BOX_A, ends=(2, 3, 4, 5), start=10, wall=6, restart=1)
    job = made(first, again)
    assert (job.units.finished, job.units.redone) == (4, 3)
    assert "done again" in job.units.notes[-1]


def test_missing_machines_are_counted_and_named():
    two = made(member(1, BOX_A, node=0, nodes=4), member(2, BOX_B, node=2, nodes=4))
    assert (two.nodes_stated, two.nodes_here, two.missing, two.missing_nodes) == (4, 2, 2, (1, 3))
    unnumbered = made(member(1, BOX_A, nodes=4), member(2, BOX_B, nodes=4))
    assert (unnumbered.missing, unnumbered.missing_nodes) == (2, ())


def test_two_nodes_of_a_launcher_on_one_machine_are_both_here():
    job = made(member(1, BOX_A, node=0, nodes=2), member(2, BOX_A, node=1, nodes=2))
    assert (len(job.hosts), job.missing) == (1, 0)


def test_a_slow_machine_is_named_by_its_own_clock():
    slow = tuple(Fraction(2) + Fraction(13, 10) * k for k in range(8))
    quick = tuple(float(2 + k) for k in range(8))
    job = made(
        rank(1, BOX_A, quick, wall=13),
        # this machine's clock is an hour ahead: its units are timed all the same
        rank(2, BOX_B, tuple(map(float, slow)), wall=13, start=3600),
        rank(3, BOX_C, quick, wall=13),
    )
    pace = straggling(job)
    assert (pace.host, pace.units, pace.later_us) == (1, 7, 300_000)
    assert [each.slowest for each in pace.paces] == [0, 7, 0]


def test_what_one_machine_waited_for_is_told_where_units_take_equally_long():
    held = samples(
        10, cpu_user_us=0.3 * S, cpu_system_us=0, run_delay_us=0.6 * S, processes=lambda _: 1
    )
    free = samples(10, cpu_user_us=0.9 * S, cpu_system_us=0, run_delay_us=0, processes=lambda _: 1)
    one = [
        line for line in member(1, BOX_A, ends=EPOCHS, rank=0, ranks=2) if '"samples"' not in line
    ]
    two = [
        line for line in member(2, BOX_B, ends=EPOCHS, rank=1, ranks=2) if '"samples"' not in line
    ]
    from tests.support.runs import written

    one[2:2], two[2:2] = written(*free), written(*held)
    pace = straggling(made(one, two))
    assert pace.host is None
    (difference,) = pace.differences
    assert (difference.host, difference.what) == (1, "waiting for a core")
    assert difference.share > difference.others + Fraction(1, 2)


def test_machines_that_keep_pace_have_no_straggler():
    pace = straggling(made(rank(1, BOX_A), rank(2, BOX_B)))
    assert (pace.host, pace.units, pace.differences) == (None, 3, ())
    assert straggling(made(rank(1, BOX_A))).host is None
    assert "not known" in straggling(made(rank(1, BOX_A), rank(2, BOX_B, ends=()))).why


def test_marks_say_how_far_the_clocks_are_apart_at_most():
    later = rank(2, BOX_B, start=0.25)
    (apart,) = marks_apart(made(rank(1, BOX_A), later))
    assert (apart.host, apart.units, apart.median_us, apart.spread_us) == (1, 4, 250_000, 0)
    assert marks_apart(made(rank(1, BOX_A))) == ()

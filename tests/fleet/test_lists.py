"""What a cluster shows, read whatever is in it: hostile texts, broken bytes, nodes that say two things."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouvrage.adapters.feeds.node_events import read_events
from ouvrage.adapters.feeds.sacct import read_sacct, text_of
from ouvrage.adapters.feeds.sacct_use import gpus_in, kib_of, limit_of, tres_of
from ouvrage.adapters.feeds.slurm_lists import (
    clock_of,
    gres_of,
    is_current,
    pairs_of,
    read_accounts,
    read_nodes,
    read_partitions,
    read_qos,
    read_reservations,
    read_totals,
)
from ouvrage.adapters.feeds.told import Told
from ouvrage.adapters.slurm import QUESTIONS, Here, Saved, saved_as, script
from ouvrage.adapters.slurm_conf import read_conf
from ouvrage.base.time import MINUTE, SECOND
from ouvrage.model.fleet import ClusterJobUse

NODE = (
    "NodeName=n1 CPUTot=16 Gres=gpu:h100:4(S:0-1) OS=Linux 6.1 #1 SMP @0 RealMemory=64000 State=IDLE+DRAIN "
    "Partitions=gpu,debug CfgTRES=cpu=16,mem=62.50G,gres/gpu=4 Reason=fan | NodeName=n9 x=y [root@1796083362]"
)


def told() -> Told:
    return Told(form="x", file="x.txt")


def test_only_commands_that_show_are_ever_given():
    shows = {"sacct", "date", "sdiag"}
    for question in QUESTIONS:
        for words in filter(None, (question.asked(5), question.otherwise)):
            assert words[0] in shows or "show" in words[1:5], words
            assert words[0] != "sacctmgr" or "--readonly" in words
    text = script(60)
    assert all(line.startswith(("{ ", "#", "mkdir", "export")) for line in text.splitlines())


def test_a_line_of_scontrol_ends_a_value_where_the_next_name_begins_and_believes_the_first():
    pairs = pairs_of(NODE)
    assert (pairs["NodeName"], pairs["OS"]) == ("n1", "Linux 6.1 #1 SMP @0")
    said = told()
    found = read_nodes(NODE + "\nno node at all\n", said, "lab", 7)
    assert [(s.value.node, s.value.gpus, s.value.gpu, s.value.partitions) for s in found] == [
        ("n1", 4, "h100", ("debug", "gpu"))
    ]
    assert [fault.line for fault in said.faults] == [
        "x.txt:2   NodeName: found 'no node at all', expected a line that begins with NodeName="
    ]


def test_a_node_that_lies_about_its_gpus_is_named():
    said = told()
    lie = NODE.replace(
        "Reason=fan |", "Reason=gres/gpu count reported lower than configured (2 < 4)"
    )
    read_nodes(lie, said, "lab", 7)
    assert list(said.notes) == [
        "n1 is configured with 4 GPUs and says otherwise: gres/gpu count reported lower than configured (2 < 4)"
    ]
    said = told()
    read_nodes(NODE.replace("gres/gpu=4", "gres/gpu=2"), said, "lab", 7)
    assert list(said.notes) == ["n1 has 4 GPUs by Gres and 2 by CfgTRES; Gres counts"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gpu:h100:4(S:0-1)", (4, "h100")), ("gpu:4", (4, None)), ("gpu", (1, None)), ("(null)", (0, None)),
        ("gpu:a100:2,gpu:h100:1(IDX:0),nic:2", (3, None)), ("gpu:a100:2(S:0-1),gpu:a100:2(S:2-3)", (4, "a100")),
    ],
)  # fmt: skip
def test_gpus_of_a_node(text: str, found: tuple[int, str | None]):
    assert gres_of(text) == found


def test_sizes_and_limits_as_slurm_writes_them():
    assert [
        kib_of(each) for each in ("3144K", "62.50G", "0", "", "2147487648Mn", "2147487648M")
    ] == [3144, 65_536_000, 0, None, None, None]
    assert [limit_of(each) for each in ("1-00:00:00", "UNLIMITED", "Partition_Limit", None)] == [
        24 * 60 * MINUTE,
        -1,
        None,
        None,
    ]
    assert gpus_in(tres_of("cpu=1,gres/gpu:h100=2,gres/gpu:a100=1")) == 3
    assert (gpus_in(tres_of("cpu=1")), gpus_in({})) == (0, None)


def test_the_clock_and_the_queue_to_accounting():
    clock = clock_of("1796083364 -0330 129600\n")
    assert clock is not None
    assert (clock.at_us, clock.minutes) == (1796083364 * SECOND, 129600)
    assert clock_of("yesterday") is None
    assert is_current("DBD Agent queue size: 0\n")
    assert not is_current("DBD Agent queue size: 12\n")
    assert not is_current("")


def test_listings_of_accounting():
    accounts = "Cluster|Account|ParentName|User|GrpTRES\nlab|root||||\nlab|physics|root||gres/gpu=8\nlab|physics||ann|\nfar|x|root||\n"
    found = read_accounts(accounts, told(), "lab", 7, {"physics": "uni"})
    assert [
        (s.value.account, s.value.parent, s.value.users, s.value.organisation, s.value.limits)
        for s in found
    ] == [("physics", "root", ("ann",), "uni", "gres/gpu=8")]
    qos = read_qos(
        "Name|Priority|Preempt|PreemptMode|UsageFactor|MaxWall\nlow|1||cluster|0.5|01:00:00\n",
        told(),
        "lab",
        7,
    )
    assert (qos[0].value.factor, qos[0].value.limits) == ("0.5", "MaxWall=01:00:00")
    said = told()
    parts = read_partitions(
        "PartitionName=gpu Default=YES Nodes=n[1-4 PriorityTier=1\nPartitionName=b Nodes=n1 MaxTime=01:00:00\n",
        said,
        "lab",
        7,
    )
    assert [each.value.partition for each in parts] == ["b"]
    assert "expected a list of nodes" in said.faults[0].line
    reservations = "Cluster|Name|TimeStart|TimeEnd|NodeName|Flags\nlab|course|1796083360|1796083420|n[3-4]|MAINT\nlab|x|soon|1|n1|\n"
    said = told()
    assert [s.value.nodes for s in read_reservations(reservations, said, "lab", "UTC")] == [
        "n[3-4]"
    ]
    assert len(said.faults) == 1


EVENTS = (
    b"Cluster|NodeName|Cluster Nodes|TimeStart|TimeEnd|State|User|TRES|Reason\n"
    b"lab||n[1-4]|1796083353|Unknown|||gres/gpu=16,cpu=64|Cluster Registered TRES\n"
    b"lab|n2||1796083362|1796083364|DRAIN|root(0)|cpu=16|fan | w\xffeird x=y\n"
)


def test_reasons_may_hold_anything():
    said = told()
    text = text_of(EVENTS, said)
    found = read_events(text, said, "UTC", "lab", 1796083400 * SECOND)
    assert [(s.value.node, s.value.reason) for s in found] == [("n2", r"fan | w\xffeird x=y")]
    assert not said.faults
    totals = read_totals(text, told(), "lab", "UTC")
    assert [(s.value.gpus, s.value.nodes) for s in totals] == [(16, "n[1-4]")]


def test_use_is_stated_beside_a_job_and_zero_processor_time_is_not_gathered():
    head = "JobIDRaw|State|Submit|Eligible|Start|End|AllocTRES|ReqTRES|TotalCPU|Timelimit|TRESUsageInTot|TRESUsageInAve"
    row = "7|COMPLETED|1796083174|1796083175|1796083177|1796083178|billing=21,cpu=1,gres/gpu=2,mem=256M|cpu=1,gres/gpu=2,mem=256M,node=1|{cpu}|01:00:00|mem=3144K,gres/gpumem=0|gres/gpuutil=12"
    for cpu, expected in (("00:00.002", 2000), ("00:00:00", None), ("1-00:00:01", 86_401 * SECOND)):
        found = read_sacct(f"{head}\n{row.format(cpu=cpu)}\n", told(), "UTC", "lab", None)
        use = next(s.value for s in found if isinstance(s.value, ClusterJobUse))
        assert (
            use.cpu_us,
            use.billing,
            use.asked_gpus,
            use.used_kib,
            use.gpu_kib,
            use.gpu_percent,
        ) == (expected, 21, 2, 3144, 0, 12)
        assert use.eligible_us == 1796083175 * SECOND


def test_a_slurm_conf_is_read_line_by_line_and_changed_in_one_place():
    text = 'ClusterName=lab # x=y\nprolog = "/a b/p"  Epilog=/e\nNodeName=n1 CPUs=4 \\\n  Gres=gpu:4 # cards\nInclude more.conf\n'
    conf = read_conf(text, "slurm.conf")
    assert (conf.faults, conf.includes, conf.value("PROLOG"), conf.value("Epilog")) == (
        (),
        ("more.conf",),
        "/a b/p",
        "/e",
    )
    changed = conf.changed({"Prolog": "/new", "HealthCheckInterval": "300"})
    assert changed == text.replace('"/a b/p"', "/new") + "HealthCheckInterval=300\n"
    faults = read_conf('ClusterName=lab\nfoo bar\nProlog=a\nProlog=b\nX="a\n', "c").faults
    assert [(each.place, each.field) for each in faults] == [
        ("2", "line"),
        ("4", "Prolog"),
        ("5", "line"),
    ]


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet='aN=\\\n"# ,:[]()|0;\x00é', max_size=60))
def test_no_text_breaks_a_reader(text: str):
    for reader in (read_nodes, read_partitions):
        reader(text, told(), "lab", 7)
    conf = read_conf(text, "c")
    assert conf.changed({}) in (text, f"{text}\n")
    clock_of(text)
    tres_of(text)
    gres_of(text)


def test_an_answer_that_is_missing_says_why(tmp_path: Path):
    question = QUESTIONS[0]
    answer = Saved(tmp_path).answer(question, 5)
    assert (answer.data, answer.why) == (b"", "clock.txt is not there")
    saved_as(tmp_path, question).write_bytes(b"1 +0000 5")
    assert Saved(tmp_path).answer(question, 5).data == b"1 +0000 5"
    answer = Here(environment={"PATH": str(tmp_path)}).answer(QUESTIONS[1], 5)
    assert answer.why == "scontrol: No such file or directory"

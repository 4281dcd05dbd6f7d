"""Which job a command belongs to: the variables and options are those that launchers were seen to set."""

from __future__ import annotations

import pytest

from ouvrage.metering.launchers import place_of

TORCHRUN = {
    "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2",
    "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_RUN_ID": "58ec7dd5-925a-4378-97c1-a155d391e296",
}  # fmt: skip
"""As torchrun 2.13 set them for a rank."""
MPIRUN = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_MCA_orte_num_nodes": "1", "PMIX_NAMESPACE": "1235419137", "PMIX_RANK": "1",
}  # fmt: skip
"""As Open MPI 4.1 set them for a rank."""
SLURM = {
    "SLURM_JOB_ID": "4242", "SLURM_NODEID": "2", "SLURM_NNODES": "4", "SLURM_PROCID": "17",
    "SLURM_LOCALID": "1", "SLURM_NTASKS": "32",
}  # fmt: skip
PLAIN = ("python", "train.py")


def told(environ: dict[str, str], command: tuple[str, ...] = PLAIN, asked: str | None = None):
    place = place_of(environ, command, asked)
    assert place is not None
    return place


def test_nothing_speaks_of_a_job():
    assert place_of({"PATH": "/bin"}, PLAIN, None) is None


@pytest.mark.parametrize(
    ("environ", "job", "via", "numbers"),
    [
        (
            TORCHRUN,
            "58ec7dd5-925a-4378-97c1-a155d391e296",
            "TORCHELASTIC_RUN_ID",
            (1, 2, 3, 1, 4, 0),
        ),
        (MPIRUN, "1235419137", "PMIX_NAMESPACE", (None, None, 1, 1, 2, None)),
        (SLURM, "4242", "SLURM_JOB_ID", (2, 4, 17, 1, 32, None)),
        ({**TORCHRUN, **SLURM}, "4242", "SLURM_JOB_ID", (1, 2, 3, 1, 4, 0)),
        ({**SLURM, "OUVRAGE_JOB": "mine"}, "mine", "OUVRAGE_JOB", (2, 4, 17, 1, 32, None)),
    ],
)
def test_a_launcher_is_read(environ, job, via, numbers):
    place = told(environ)
    assert (place.job, place.via, place.hint) == (job, via, None)
    assert (
        place.node, place.nodes, place.rank, place.local_rank, place.ranks, place.restart,
    ) == numbers  # fmt: skip


def test_the_persons_word_counts_first():
    place = told({**TORCHRUN, **SLURM}, asked="resnet")
    assert (place.job, place.via, place.rank) == ("resnet", "--job", 3)


@pytest.mark.parametrize("unnamed", ["none", "", "None"])
def test_ranks_whose_launcher_names_no_job_are_not_joined_by_guessing(unnamed: str):
    place = told({**TORCHRUN, "TORCHELASTIC_RUN_ID": unnamed})
    assert place.job is None
    assert "--rdzv-id" in (place.hint or "")


@pytest.mark.parametrize(
    "command",
    [
        ("torchrun", "--nnodes=4", "--node-rank=2", "--rdzv-id=big.run", "train.py"),
        ("torchrun", "--nnodes", "4", "--node_rank", "2", "--rdzv_id", "big.run", "train.py"),
        ("sh", "-c", "exec torchrun --nnodes 4 --node-rank 2 --rdzv-id big.run train.py"),
    ],
)
def test_options_of_a_launcher_in_the_command_are_read(command: tuple[str, ...]):
    place = told({}, command)
    assert (place.job, place.via, place.node, place.nodes) == ("big.run", "--rdzv-id", 2, 4)


def test_an_elastic_range_of_nodes_is_no_number_of_nodes():
    place = told({}, ("torchrun", "--nnodes=1:4", "--rdzv-id=a", "t.py"))
    assert place.nodes is None


def test_the_same_options_of_another_program_say_nothing():
    assert place_of({}, ("backup", "--rdzv-id=a", "--nnodes=4"), None) is None


def test_an_id_that_is_no_name_becomes_one():
    place = told({"TORCHELASTIC_RUN_ID": "a b/c@1:2", "RANK": "9" * 40})
    assert (place.job, place.rank) == ("a-b-c-1-2", None)
    assert place_of({"SLURM_JOB_ID": "\0/"}, PLAIN, None) is None

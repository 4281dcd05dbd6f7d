"""What counts as an answer of slurmrestd's: forms that 22.05 gave, and servers that answer anything or nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ouvrage.adapters.slurm_job import Asked, as_json, as_options
from ouvrage.adapters.slurm_rest import Denied, Rest, Unanswered
from ouvrage.base.errors import OuvrageError


class Answering:
    """A server that gives the next answer; ``None`` closes the connection."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes] | None] = []
        self.asked: list[tuple[str, str, Any]] = []
        self.connections = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                outer.connections += 1

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append((self.command, self.path, json.loads(body) if body else None))
                answer = outer.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer[0])
                self.send_header("Content-Length", str(len(answer[1])))
                self.end_headers()
                self.wfile.write(answer[1])

            do_GET = do_POST = do_DELETE = _any  # noqa: N815 -- the names are http.server's

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def say(self, value: Any, status: int = 200) -> None:
        self.answers.append((status, json.dumps(value).encode()))


@pytest.fixture
def slurmrestd() -> Iterator[Answering]:
    made = Answering()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def rest(slurmrestd: Answering) -> Iterator[Rest]:
    made = Rest(f"http://127.0.0.1:{slurmrestd.server.server_port}", "ouvrage", lambda: "token")
    yield made
    made.close()


JOB = {
    "job_id": 7, "name": "ouvrage:x", "job_state": "RUNNING", "state_reason": "None", "batch_host": "n1", "cluster": "lab",
    "submit_time": 1796097211, "preempt_time": 0, "gres_detail": ["gpu:h100:3(IDX:0-1,3)"],
    "job_resources": {"allocated_nodes": [{
        "nodename": "n1", "memory_allocated": 512,
        "sockets": {"1": {"cores": {"0": "allocated", "1": "unassigned"}}, "0": {"cores": {"10": "allocated", "2": "allocated_and_in_use"}}},
    }]},
}  # fmt: skip


def test_a_job_with_a_place_is_read(slurmrestd: Answering, rest: Rest) -> None:
    slurmrestd.say({"errors": [], "jobs": [JOB]})
    found = rest.job(7)
    assert found is not None
    assert (found.gpus, found.cores, found.memory_mib) == (
        (0, 1, 3),
        ((0, 2), (0, 10), (1, 0)),
        512,
    )
    assert (found.preempt_us, found.submit_us) == (None, 1_796_097_211_000_000)
    assert slurmrestd.asked == [("GET", "/slurm/v0.0.38/job/7", None)]


@pytest.mark.parametrize(
    ("detail", "gpus"),
    [([], ()), (["gpu:h100:0(IDX:N/A)"], ()), (["gpu:1(IDX:2)"], (2,)), (["gpu:a:1(IDX:0),gpu:b:2(IDX:1-2)"], (0, 1, 2)), (["nic:2(IDX:0-1)"], ())],
)  # fmt: skip
def test_gpus_by_number(
    slurmrestd: Answering, rest: Rest, detail: list[str], gpus: tuple[int, ...]
) -> None:
    slurmrestd.say({"jobs": [{**JOB, "gres_detail": detail}]})
    found = rest.job(7)
    assert found is not None
    assert found.gpus == gpus


def test_a_number_says_that_a_job_was_taken_whatever_is_said_beside_it(
    slurmrestd: Answering, rest: Rest
) -> None:
    slurmrestd.say({"errors": [{"error_code": 2042, "error": "held"}], "job_id": 305})
    assert rest.submit("#!/bin/sh\n", {"name": "x"}) == 305


def test_a_refusal_is_told_in_slurms_words(slurmrestd: Answering, rest: Rest) -> None:
    for _ in range(2):  # a bad token too is answered so
        slurmrestd.say(
            {
                "errors": [
                    {"description": "Batch job submission failed", "error": "Unspecified error"}
                ]
            },
            500,
        )
    with pytest.raises(Denied, match="submission failed Unspecified"):
        rest.submit("#!/bin/sh\n", {"name": "x"})
    with pytest.raises(Denied):
        rest.job(7)
    slurmrestd.answers.append((401, b"{}"))
    with pytest.raises(Denied, match="refuses the token"):
        rest.job(7)


def test_a_job_that_is_not_known_is_none_and_one_that_is_over_is_no_trouble(
    slurmrestd: Answering, rest: Rest
) -> None:
    gone = {"errors": [{"description": "Unable to find JobId=9", "error_number": 2017}], "jobs": []}
    slurmrestd.say(gone, 500)
    assert rest.job(9) is None
    slurmrestd.say(gone, 500)
    rest.cancel(9)
    slurmrestd.say({"errors": [{"error_number": 2, "error": "no"}]}, 500)
    with pytest.raises(Denied, match="no"):
        rest.cancel(9)


@pytest.mark.parametrize(
    "answer", [None, (200, b""), (200, b"<html>"), (500, b"[]"), (200, b'{"job_id"')]
)
def test_no_whole_answer_is_none_and_nobody_asks_again(
    slurmrestd: Answering, rest: Rest, answer: tuple[int, bytes] | None
) -> None:
    slurmrestd.answers.append(answer)
    with pytest.raises(Unanswered):
        rest.submit("#!/bin/sh\n", {"name": "x"})
    assert len(slurmrestd.asked) == 1


def test_a_connection_is_kept_and_one_that_was_closed_is_not_used(
    slurmrestd: Answering, rest: Rest
) -> None:
    for _ in range(3):
        slurmrestd.say({"job_id": 1})
        rest.submit("#!/bin/sh\n", {"name": "x"})
    assert slurmrestd.connections == 1


def test_nobody_there_is_no_answer() -> None:
    with pytest.raises(Unanswered, match=r"127\.0\.0\.1:1"):
        Rest("http://127.0.0.1:1", "ouvrage", lambda: "token").job(1)
    with pytest.raises(OuvrageError, match="no address"):
        Rest("ftp://x", "ouvrage", lambda: "token")


def test_both_forms_ask_for_the_same() -> None:
    asked = Asked(
        name="ouvrage:x", account="a-b", partition="gpu", qos=None, gpus=2, cpus=4, memory_mib=512, minutes=5, nice=995
    )  # fmt: skip
    told, words = as_json(asked), as_options(asked)
    assert (told["gres"], told["cpus_per_task"], told["memory_per_node"], told["time_limit"], told["no_requeue"]) == ("gpu:2", 4, 512, 5, True)  # fmt: skip
    assert {
        "--gres=gpu:2",
        "--cpus-per-task=4",
        "--mem=512M",
        "--time=5",
        "--no-requeue",
        "--nice=995",
    } <= set(words)
    assert "qos" not in told
    assert not any(word.startswith("--qos") for word in words)

"""One good request for every address about machines, offers, leases and jobs, for the matrix of rights.

Jobs here ask for more than any node has, so that nothing is placed while a refusal is looked at; the one whose log is read has ended.
"""

from __future__ import annotations

from typing import Any

from ouvrage.adapters.clock import now_us
from tests.blackbox.spools import run_id, spool
from tests.platform.samples import VISION, Sample, World
from tests.support.exported import exported_run
from tests.support.proofs import audited, proof_line
from tests.support.runner_twin import Twin, inventory

_TERMS = {"cpus": 1, "memory_mib": 64, "disk_mib": 1, "rate": "0.10"}


class Works:
    """What the samples of one world need, made once and kept."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.owner = world.server.owner
        self._twin: Twin | None = None
        self._made: dict[str, Any] = {}

    def twin(self) -> Twin:
        if self._twin is None:
            self._twin = Twin.enrolled(
                self.world.server.url, self.enrolment(), now_us, inventory("big", cpus=2000)
            )
        self._twin.ask()
        return self._twin

    def enrolment(self) -> str:
        return self.owner.post("/v1/nodes/enrolments", {})["secret"]

    def offer(self, name: str = "small", **more: Any) -> str:
        if name not in self._made:
            self.twin()
            terms = {"name": name, **_TERMS, **more}
            self._made[name] = self.owner.post("/v1/offers", terms)["offer"]
        return name

    def huge(self) -> str:
        return self.offer("huge", gpus=64)

    def new_job(self, offer: str, **spec: Any) -> str:
        asked = {"project": self.world.vision, "offer": offer}
        spec = {"command": ["true"], **spec}
        return self.owner.post("/v1/jobs", {**asked, "spec": spec})["job"]

    def cancelled(self) -> str:
        job = self.new_job(self.huge())
        self.owner.post(f"/v1/jobs/{job}/cancel", {})
        return job

    def run(self) -> str:
        """A run that acme's project holds."""
        if "run" not in self._made:
            made = run_id(7)
            content = exported_run(spool(made, [1.0]))
            path = f"/v1/facts?project={self.world.vision}"
            self._made["run"] = self.owner.post(path, content=content)["run"]
        return self._made["run"]

    def done(self) -> str:
        """A job that has run, and left a log and a file."""
        if "done" not in self._made:
            twin = self.twin()
            job = self.new_job(self.offer(), outputs={"out": "out"}, inputs={"in": "in"})
            path = f"/v1/jobs/{job}/files/in"
            assert self.owner("PUT", path, headers={}, content=b"in").status_code == 200
            while not twin.starts:
                twin.ask(wait_s=5)
            attempt = twin.starts[0].attempt
            twin.log(attempt, 0, b"hello\n")
            twin.send("PUT", f"/v1/runner/attempts/{attempt}/outputs/out", b"out")
            twin.report([twin.began(attempt), twin.ended(attempt)])
            twin.ask()
            self._made["done"] = job
        return self._made["done"]

    def lease(self, offer: str = "small", **terms: Any) -> str:
        self.offer(offer, **terms)
        self.twin()
        asked = {"project": self.world.vision, "offer": offer, "for_us": 3_600_000_000}
        return self.owner.post("/v1/leases", asked)["lease"]

    def node(self) -> str:
        self.twin()
        return "big"


_WORKS: dict[int, Works] = {}


def works(world: World) -> Works:
    """What is kept for a world."""
    return _WORKS.setdefault(id(world), Works(world))


def _job_body(world: World) -> Any:
    spec = {"command": ["true"]}
    return {"project": world.vision, "offer": works(world).huge(), "spec": spec}


def _lease_body(world: World) -> Any:
    works(world).twin()
    return {"project": world.vision, "offer": works(world).offer(), "for_us": 3_600_000_000}


def _enrol_body(world: World) -> Any:
    token = works(world).enrolment()
    return {"token": token, "inventory": inventory(world.new("node")).model_dump(mode="json")}


ATTEMPT = "0" * 32
WORK: dict[tuple[str, str], Sample] = {
    ("GET", "/v1/nodes"): Sample(),
    ("POST", "/v1/nodes/enrolments"): Sample(body=lambda _: {}),
    ("GET", "/v1/nodes/{node}"): Sample(path=lambda w: f"/v1/nodes/{works(w).node()}"),
    ("GET", "/v1/nodes/{node}/health"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).node()}/health"
    ),
    ("POST", "/v1/nodes/{node}/repair"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).node()}/repair",
        body=lambda _: {"number": 1, "step": "look", "stepped": "done"},
    ),
    ("POST", "/v1/nodes/{node}/maintenance"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).node()}/maintenance",
        body=lambda _: {"from_us": 1, "to_us": 2},
    ),
    ("POST", "/v1/nodes/{node}/fence"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).node()}/fence", body=lambda _: {"held": False}
    ),
    ("POST", "/v1/nodes/{node}/listing"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).node()}/listing", body=lambda _: {"listed": True}
    ),
    ("GET", "/v1/offers"): Sample(),
    ("POST", "/v1/offers"): Sample(body=lambda w: {"name": w.new("offer"), **_TERMS}),
    ("GET", "/v1/offers/{offer}"): Sample(path=lambda w: f"/v1/offers/{works(w).offer()}"),
    ("POST", "/v1/offers/{offer}/withdraw"): Sample(
        path=lambda w: f"/v1/offers/{works(w).offer(w.new('gone'))}/withdraw", body=lambda _: {}
    ),
    ("GET", "/v1/leases"): Sample(),
    ("POST", "/v1/leases"): Sample(
        VISION, lambda w: works(w).offer() and "/v1/leases", _lease_body
    ),
    ("GET", "/v1/leases/{lease}"): Sample(VISION, lambda w: f"/v1/leases/{works(w).lease()}"),
    ("POST", "/v1/leases/{lease}/release"): Sample(
        VISION, lambda w: f"/v1/leases/{works(w).lease()}/release", lambda _: {}
    ),
    ("GET", "/v1/jobs"): Sample(),
    ("POST", "/v1/jobs"): Sample(VISION, lambda w: works(w).huge() and "/v1/jobs", _job_body),
    ("GET", "/v1/jobs/{job}"): Sample(VISION, lambda w: f"/v1/jobs/{works(w).done()}"),
    ("GET", "/v1/services/{job}/{path}"): Sample(
        VISION, lambda w: f"/v1/services/{works(w).done()}/health"
    ),
    ("POST", "/v1/services/{job}/{path}"): Sample(
        VISION, lambda w: f"/v1/services/{works(w).done()}/v1/completions", lambda _: {}
    ),
    ("POST", "/v1/jobs/{job}/cancel"): Sample(
        VISION, lambda w: f"/v1/jobs/{works(w).new_job(works(w).huge())}/cancel", lambda _: {}
    ),
    ("POST", "/v1/jobs/{job}/retry"): Sample(
        VISION, lambda w: f"/v1/jobs/{works(w).cancelled()}/retry"
    ),
    ("GET", "/v1/jobs/{job}/explain"): Sample(
        VISION, lambda w: f"/v1/jobs/{works(w).done()}/explain"
    ),
    ("GET", "/v1/jobs/{job}/log"): Sample(VISION, lambda w: f"/v1/jobs/{works(w).done()}/log"),
    ("GET", "/v1/jobs/{job}/files"): Sample(VISION, lambda w: f"/v1/jobs/{works(w).done()}/files"),
    ("GET", "/v1/jobs/{job}/files/{name}"): Sample(
        VISION, lambda w: f"/v1/jobs/{works(w).done()}/files/out"
    ),
    ("PUT", "/v1/jobs/{job}/files/{name}"): Sample(
        VISION, lambda w: f"/v1/jobs/{works(w).new_job(works(w).huge(), inputs={'a': 'a'})}/files/a"
    ),
    ("POST", "/v1/runner/enrol"): Sample(body=_enrol_body),
    ("POST", "/v1/runner/orders"): Sample(
        body=lambda _: {"inventory": None, "known": [], "wait_s": 0}
    ),
    ("GET", "/v1/runner/health"): Sample(),
    ("POST", "/v1/runner/events"): Sample(body=lambda _: {"events": []}),
    ("PUT", "/v1/runner/attempts/{attempt}/log"): Sample(
        path=lambda _: f"/v1/runner/attempts/{ATTEMPT}/log?offset=0"
    ),
    ("GET", "/v1/runner/attempts/{attempt}/inputs/{name}"): Sample(
        path=lambda _: f"/v1/runner/attempts/{ATTEMPT}/inputs/x"
    ),
    ("PUT", "/v1/runner/attempts/{attempt}/outputs/{name}"): Sample(
        path=lambda _: f"/v1/runner/attempts/{ATTEMPT}/outputs/x"
    ),
    ("POST", "/v1/facts"): Sample(VISION, lambda world: f"/v1/facts?project={world.vision}"),
    ("GET", "/v1/runs"): Sample(),
    ("POST", "/v1/samples"): Sample(),
    ("POST", "/v1/nodes/{node}/proofs"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).node()}/proofs",
        body=lambda w: {"facts": [proof_line(audited(works(w).node()))]},
    ),
    ("GET", "/v1/nodes/{node}/samples"): Sample(
        path=lambda w: f"/v1/nodes/{works(w).twin().node}/samples"
    ),
    ("GET", "/v1/runs/{run}"): Sample(VISION, lambda w: f"/v1/runs/{works(w).run()}"),
}
WORK_REFUSED = {
    ("GET", "/v1/services/{job}/{path}"): 409,  # the job is no service
    ("POST", "/v1/services/{job}/{path}"): 409,
    ("PUT", "/v1/runner/attempts/{attempt}/log"): 404,
    ("GET", "/v1/runner/attempts/{attempt}/inputs/{name}"): 404,
    ("PUT", "/v1/runner/attempts/{attempt}/outputs/{name}"): 404,
    ("POST", "/v1/samples"): 422,
    ("POST", "/v1/facts"): 422,  # the body is no run
    ("POST", "/v1/runner/events"): 409,  # it has a key, and never joined
}
"""A node that asks about another's attempt is told that there is none."""

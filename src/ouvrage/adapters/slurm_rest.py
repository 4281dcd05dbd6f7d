"""What is asked of Slurm through slurmrestd: submitting a job, looking at one, cancelling it. One connection, kept.

Decides what counts as an answer. A submit either has a job's number, or was refused in words, or nobody knows (``Unanswered``): the caller
alone may decide whether to ask again. slurmrestd answers a bad token, and much else, with 500 and an error list; that list is what is read.
The paths are those of OpenAPI v0.0.38 (Slurm 22.05), https://slurm.schedmd.com/rest_api.html.
"""

from __future__ import annotations

import http.client
import json
import re
import select
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import SECOND

VERSION = "v0.0.38"
_GPUS = re.compile(r"gpu[^()]*\(IDX:([0-9][0-9,-]*)\)")
_SECONDS = 20.0
_NO_SUCH_JOB = 2017
"""ESLURM_INVALID_JOB_ID of slurm/slurm_errno.h."""


class Unanswered(Exception):
    """No whole answer came: what was asked may have happened or not."""


class Denied(Exception):
    """Slurm said no; the words are its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A job as the controller describes it. ``gpus`` and ``cores`` are Slurm's numbers on its one ``node``.

    ``preempt_us``: since when it is to make room (None: it isn't). Accounting has the same job under ``cluster``, its number and ``submit_us``.
    """

    number: int
    name: str
    state: str
    reason: str
    node: str | None
    gpus: tuple[int, ...]
    cores: tuple[tuple[int, int], ...]
    memory_mib: int
    preempt_us: int | None
    cluster: str
    submit_us: int


class Rest:
    """A connection to slurmrestd as one user. ``token`` gives a JWT that holds now."""

    def __init__(self, address: str, user: str, token: Callable[[], str]) -> None:
        parts = urlsplit(address)
        if parts.scheme != "http" or not parts.hostname:
            raise OuvrageError(
                "slurm/address", f"{address!r} is no address of slurmrestd", hint="http://127.0.0.1:6820"
            )  # fmt: skip
        self.address = address
        self._host, self._port = parts.hostname, parts.port or 6820
        self._user, self._token = user, token
        self._lock = threading.Lock()
        self._kept: http.client.HTTPConnection | None = None

    def submit(self, script: str, job: Mapping[str, Any]) -> int:
        """The number of a new job. Raises ``Denied``, or ``Unanswered`` where nobody knows whether there is one."""
        told = self._asked("POST", "job/submit", {"script": script, "job": job})
        number = told.get("job_id")
        if isinstance(number, int) and number > 0:
            return number  # what stands in ``errors`` beside it is said of a job that was taken
        raise Denied(_errors(told) or "the job was not taken, without a word")

    def job(self, number: int) -> Given | None:
        """A job; None where the controller knows none of that number (any more)."""
        told = self._asked("GET", f"job/{number}")
        found = told.get("jobs") or []
        if found:
            return _given(found[0])
        if any(each.get("error_number") == _NO_SUCH_JOB for each in told.get("errors") or []):
            return None
        raise Denied(_errors(told) or f"no word about job {number}")

    def cancel(self, number: int) -> None:
        """End a job, whether it waits or runs; one that is over already is none to end."""
        told = self._asked("DELETE", f"job/{number}")
        errors = told.get("errors") or []
        over = (_NO_SUCH_JOB, 2021)  # ESLURM_ALREADY_DONE
        if any(each.get("error_number", each.get("error_code")) not in over for each in errors):
            raise Denied(_errors(told))

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._drop()

    def _asked(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-SLURM-USER-NAME": self._user, "X-SLURM-USER-TOKEN": self._token()}
        headers |= {} if data is None else {"Content-Type": "application/json"}
        with self._lock:
            try:
                return self._exchange(method, f"/slurm/{VERSION}/{path}", data, headers)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._drop()
                raise Unanswered(_in_words(self.address, error)) from error

    def _exchange(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str]
    ) -> Any:
        if self._kept is not None and _is_closed(self._kept):
            self._drop()
        if self._kept is None:
            self._kept = http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)
        self._kept.request(method, path, body=data, headers=dict(headers))
        answer = self._kept.getresponse()
        text = answer.read()
        if answer.will_close:
            self._drop()
        if answer.status in (401, 403):
            raise Denied(f"slurmrestd refuses the token (HTTP {answer.status})")
        told = json.loads(text)
        if not isinstance(told, dict):
            raise ValueError("no object")
        return told

    def _drop(self) -> None:
        if self._kept is not None:
            self._kept.close()
        self._kept = None


def _is_closed(kept: http.client.HTTPConnection) -> bool:
    """Whether the other side has closed a connection on which nothing is due: asked on it, nobody would answer."""
    return kept.sock is None or bool(select.select([kept.sock], [], [], 0)[0])


def _in_words(address: str, error: Exception) -> str:
    what = (
        "answered with no JSON"
        if isinstance(error, ValueError)
        else f"{error or type(error).__name__}"
    )
    return f"{address}: {what}"


def _errors(told: Any) -> str:
    """What an answer's error list says, each once."""
    said: list[str] = []
    for each in told.get("errors") or []:
        words = " ".join(str(each[key]) for key in ("description", "error") if each.get(key))
        said += [words] if words and words not in said else []
    return "; ".join(said)[:500]


def _given(job: Any) -> Given:
    held = (job.get("job_resources") or {}).get("allocated_nodes") or []
    first = held[0] if held else {}
    preempt = job.get("preempt_time") or 0
    return Given(
        number=job["job_id"],
        name=job.get("name") or "",
        state=job.get("job_state") or "",
        reason=job.get("state_reason") or "",
        node=first.get("nodename") or job.get("batch_host") or None,
        gpus=_indices(job.get("gres_detail") or []),
        cores=_cores(first.get("sockets") or {}),
        memory_mib=first.get("memory_allocated") or 0,
        preempt_us=preempt * SECOND or None,
        cluster=job.get("cluster") or "",
        submit_us=(job.get("submit_time") or 0) * SECOND,
    )


def _indices(details: Sequence[str]) -> tuple[int, ...]:
    """``["gpu:h100:3(IDX:0-1,3)"]`` as numbers."""
    found: list[int] = []
    for part in (
        part for detail in details for each in _GPUS.findall(detail) for part in each.split(",")
    ):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def _cores(sockets: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """Sockets and the allotted cores of each, by number."""
    return tuple(
        (int(socket), int(core))
        for socket, told in sorted(sockets.items(), key=lambda each: int(each[0]))
        for core, state in sorted((told.get("cores") or {}).items(), key=lambda each: int(each[0]))
        if str(state).startswith("allocated")
    )

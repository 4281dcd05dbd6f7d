"""From two empty directories to a run's figure on a server, as it is typed; the server killed in between."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.blackbox.home import Home

TRAIN = "print('Epoch 1/2', flush=True); sum(range(10**6)); print('Epoch 2/2', flush=True)"


def test_a_run_is_pushed_and_reads_the_same_there(homes: Callable[[str], Home], tmp_path: Path):
    state = tmp_path / "state"
    server = homes("server")
    up = ("up", "--state", str(state), "--no-runner", "--listen", "127.0.0.1:0", "--detach")
    assert server(*up).code == 0
    here = homes("here")
    ran = here("run", "--price", "0.36/h", "--label", "mine", "--", sys.executable, "-c", TRAIN)
    assert ran.code == 0, ran.err

    nowhere = here("run", "push", "mine")
    assert (nowhere.code, "error[server/none]" in nowhere.err) == (2, True)
    assert nowhere.err.splitlines()[-1] == "nothing was written"
    here = _signed_in(here, state)
    pushed = here("run", "push", "mine")
    assert pushed.code == 0, pushed.err
    code, where, *_ = pushed.first.split(" is in ")
    assert where.startswith("owner/main at http://127.0.0.1:")
    assert pushed.out.splitlines()[-1].endswith(f"/v1/runs/{code}")

    os.kill(int((state / "server.pid").read_text()), signal.SIGKILL)
    away = here("run", "push", "mine")
    assert (away.code, "error[server/unreachable]" in away.err) == (1, True)
    assert server(*up).code == 0
    again = _signed_in(here, state)("run", "push", "mine")
    assert again.first.endswith("already; nothing was changed.")
    other = _signed_in(here, state)("run", "push", "mine", "--project", "nowhere")
    assert (other.code, "error[project/unknown]" in other.err) == (2, True)

    assert server("down", "--state", str(state)).code == 0
    there = replace(server, environment={**server.environment, "OUVRAGE_HOME": str(state)})
    ours, theirs = (home("report", "mine", "--json").json for home in (here, there))
    assert {**ours, "as_of": None} == {**theirs, "as_of": None}
    assert there("verify").code == 0


def _signed_in(home: Home, state: Path) -> Home:
    url = (state / "server.url").read_text().strip()
    names = {"OUVRAGE_URL": url, "OUVRAGE_TOKEN_FILE": str(state / "owner.token")}
    return replace(home, environment={**home.environment, **names})

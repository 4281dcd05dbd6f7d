"""From an empty directory to strangers' commands in a sandbox, as the owner of a machine types it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.blackbox.platform_home import platform_of
from tests.support.meter import until
from tests.support.orders import missing


@pytest.fixture
def owner(ouvrage: Home, tmp_path: Path) -> Iterator[Home]:
    state = tmp_path / "state"
    (state / "agent").mkdir(parents=True, mode=0o700)
    seen = tmp_path / "programs"
    seen.mkdir()
    (seen / "hello.txt").write_text("from the owner\n")
    (state / "agent" / "agent.toml").write_text(f'see = ["{seen}"]\n')
    with platform_of(ouvrage, state, "--no-agent") as made:
        yield made


def test_a_machine_runs_jobs_it_does_not_trust(owner: Home, tmp_path: Path) -> None:
    made = owner("offer", "create", "small", "--price", "0.30/h", "--cpus", "1", "--memory", "128MiB",
                 "--disk", "32MiB", "--audience", "own")  # fmt: skip
    assert made.code == 0, made.err
    until(lambda: "here" in owner("node", "list").out, "the machine's own runner")

    script = "cat PROGRAMS/hello.txt; id -un; hostname; ls /home /root 2>&1; echo Epoch 1/1"
    script = script.replace("PROGRAMS", str(tmp_path / "programs"))
    done = owner("job", "submit", "--offer", "small", "--follow", "--", "sh", "-c", script)
    assert done.code == 0, done.out + done.err
    assert "from the owner\njob\njob\n" in done.out
    assert done.out.count("No such file or directory") == 2
    shown = json.loads(owner("job", "show", "last", "--json").out)
    text = json.dumps(shown)
    assert '"exit_code": 0' in text
    assert re.search(r'"memory_bytes": [1-9]\d{5,}', text), text
    assert '"scrub": "clean"' in text

    big = "b = bytearray(1 << 30)"
    killed = owner(
        "job", "submit", "--offer", "small", "--follow", "--", "/usr/bin/python3", "-c", big
    )
    assert killed.code != 0
    assert "128 MiB of memory" in owner("job", "show", "last").out

    attempts = tmp_path / "state" / "agent" / "attempts"
    until(lambda: not list(attempts.iterdir()), "the node forgot what the server has")


def test_the_owner_sees_for_himself_that_it_holds(ouvrage: Home) -> None:
    why = missing()
    if why:
        pytest.skip(why)
    said = ouvrage("doctor", "--isolation", "--plain")
    assert said.code == 0, said.out
    lines = said.out.splitlines()
    assert re.fullmatch(
        r"A sandbox holds on this machine: \d+ checks, and nothing got out\.", lines[0]
    )
    assert any(line.startswith("holds  fork-bomb") for line in lines)
    assert lines[-1] == "Keep it for the agent: ouvrage doctor --isolation --state DIR"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("agent", "run", "--state", "a", "--server", "nowhere"), "agent/server"),
        (("agent", "run", "--state", "a", "--server", "http://h", "--see", "/none"), "agent/see"),
        (("agent", "run", "--state", "a", "--server", "http://h", "--deny", "x"), "agent/deny"),
        (("doctor",), "doctor/what"),
    ],
)
def test_what_is_refused_is_said(
    ouvrage: Home, arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    told = [str(tmp_path / "a") if each == "a" else each for each in arguments]
    said = ouvrage(*told)
    assert said.code == 2
    assert f"error[{words}]" in said.err

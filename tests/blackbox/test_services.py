"""From an empty directory to a service that was asked and what it cost, as people type it."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.blackbox.home import Home
from tests.blackbox.platform_home import platform_of
from tests.support.meter import until
from tests.support.served import SERVICE


@pytest.fixture
def owner(ouvrage: Home, tmp_path: Path) -> Iterator[Home]:
    state = tmp_path / "state"
    with platform_of(ouvrage, state) as made:
        yield made


def test_a_service_is_asked_and_its_tokens_have_a_cost(owner: Home, tmp_path: Path) -> None:
    made = owner.inside("offer", "create", "small", "--price", "3.60/h", "--cpus", "1", "--memory", "128MiB",
                        "--disk", "32MiB", "--audience", "own")  # fmt: skip
    assert made.code == 0, made.err
    until(lambda: "1 here now" in owner.inside("node", "list").out, "the machine's own runner")
    made = owner.inside(
        "job", "submit", "--offer", "small", "--name", "chat", "--port", "8000", "--health", "/health",
        "--restart", "on-failure", "--", "/usr/bin/python3", "-c", SERVICE,
    )  # fmt: skip
    assert made.code == 0, made.err
    until(lambda: "/  well" in owner.inside("job", "show", "chat").out, "a service that is well")
    assert "  asked      not yet" in owner.inside("job", "show", "chat").out

    url = owner.environment["OUVRAGE_URL"]
    token = Path(owner.environment["OUVRAGE_TOKEN_FILE"]).read_text().strip()
    asked = urllib.request.Request(
        f"{url}/v1/services/chat/v1/chat/completions", b'{"stream": true}',
        {"Authorization": f"Bearer {token}"},
    )  # fmt: skip
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert b"[DONE]" in answer.read()
    said = until(lambda: _asked(owner), "the exchange was counted")
    lines = [line.strip() for line in said.splitlines()]
    assert "asked      1 request, 3 tokens out and 7 in" in lines
    assert any(line.startswith("times      first byte ") for line in lines)
    assert any(line.startswith("cost       0.") and "EUR per token" in line for line in lines)
    page = urllib.request.Request(f"{url}/v1/services/chat/", headers={"Authorization": "Bearer x"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(page, timeout=30)
    assert refused.value.code == 401
    refused.value.close()

    assert owner.inside("job", "cancel", "chat").code == 0
    until(lambda: "is cancelled" in owner.inside("job", "show", "chat").first, "its end")
    state = Path(owner.environment["OUVRAGE_TOKEN_FILE"]).parent
    assert owner.inside("down", "--state", str(state)).code == 0
    held = replace(owner, environment={**owner.environment, "OUVRAGE_HOME": str(state)})
    assert held.inside("verify").first.startswith("The books hold: ")


def _asked(owner: Home) -> str | None:
    said = owner.inside("job", "show", "chat").out
    return said if "1 request" in said else None

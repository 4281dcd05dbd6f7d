"""Without the packages that serve and speak HTTP, the verbs that need them say which to install."""

from __future__ import annotations

import sys

import pytest

from ouvrage.cli.main import main


@pytest.mark.parametrize(
    ("package", "verb"), [("httpx2", ["whoami"]), ("uvicorn", ["up", "--listen", "127.0.0.1:0"])]
)
def test_a_missing_package_is_told_with_what_brings_it(
    package: str,
    verb: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in list(sys.modules):
        if name.startswith(("ouvrage.cli.", "ouvrage.server", "ouvrage.adapters.server_client")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert main(verb) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"error[install/server]: this needs {package}, which is not installed")
    assert "pip install 'ouvrage[server]'" in told

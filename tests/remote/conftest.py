"""What is switched in these tests, each started once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote import outside


@pytest.fixture(scope="session")
def bmc_redfish(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not outside.HAS_EMULATOR:
        pytest.skip("sushy-emulator is not installed")
    with outside.emulator(tmp_path_factory.mktemp("emulator"), ["n1", "n2"]) as address:
        yield address


@pytest.fixture(scope="session")
def bmc_ipmi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not outside.HAS_SIM:
        pytest.skip("ipmi_sim or ipmitool is not installed")
    with outside.ipmi_sim(tmp_path_factory.mktemp("ipmi")) as address:
        yield address


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file with the password, as its owner keeps it."""
    file = tmp_path / "secret"
    file.write_text(outside.PASSWORD + "\n")
    file.chmod(0o600)
    return file

"""The engine that is part of the platform keeps to the contract of all engines."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from ouvrage.adapters.clock import now_us
from ouvrage.base.grades import Grade
from ouvrage.ledger.kinds import fact_of
from ouvrage.metering.exchange import export_run
from ouvrage.model.health import Verdict
from tests.engine.contract import EngineContract
from tests.engine.under_test import Parts, Rig, cores_here
from tests.engine.under_test import rig as rig_of
from tests.support.orders import missing
from tests.support.server import NO_CA

_SOURCE = "c" * 32


def _told(node: str, rig: Rig, verdict: str, action: str) -> None:
    """The node's own watch says how its machine is; no machine of the tests breaks when it is asked to."""
    now = now_us()
    said = Verdict(
        node=node, device=None, check="memory", verdict=verdict, code="uncorrectable", evidence=(),
        action=action, since_us=now, boot="boot-1", epoch=0, shadow=False,
    )  # fmt: skip
    fact = fact_of(
        said, source=_SOURCE, id=f"verdict/{now}", subject=f"node:{node}", valid_from=now,
        valid_to=None, grade=Grade.MEASURED,
    )  # fmt: skip
    answer = httpx2.post(
        f"{rig.owner.url}/v1/facts",
        content=export_run(f"node:{node}", [fact], None),
        headers={"Authorization": f"Bearer {rig.key(node)}"},
        verify=NO_CA,
    )
    assert answer.status_code == 200, answer.text


def _break(node: str, rig: Rig) -> None:
    _told(node, rig, "CRITICAL", "reboot")


def _mend(node: str, rig: Rig) -> None:
    rig.fence(node, held=False)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    why = missing()
    if why:
        pytest.skip(why)
    parts = Parts(
        cores=cores_here(),
        waits=frozenset({"placement/waits-cpu", "placement/waits-gpu", "placement/behind"}),
        splits_nodes=True,
        break_node=_break,
        mend_node=_mend,
    )
    with rig_of(tmp_path_factory.mktemp("embedded"), parts) as made:
        yield made


class TestEmbedded(EngineContract):
    pass

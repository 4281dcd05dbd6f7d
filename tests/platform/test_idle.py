"""GPUs that are held and stand idle: the tenant is told, and what was agreed to is done."""

from __future__ import annotations

from tests.platform.test_attempts import holds, ready, started
from tests.platform.working import Working

MINUTE = 60_000_000


def stands_idle(working: Working, attempt: str, minutes: int) -> None:
    twin = working.twins[0]
    twin.report([twin.progress(attempt, 0, idle_us=minutes * MINUTE)])
    working.reconcile()
    twin.ask()


def with_gpu(working: Working, **spec: object) -> tuple[object, str, str]:
    ann = ready(working, gpus=1)
    working.offer("gpu", gpus=1)
    job = working.submit(ann, "gpu", **spec)["job"]
    working.engine.observe()
    twin = working.twins[0]
    twin.ask()
    attempt = twin.starts[-1].attempt
    twin.report([twin.began(attempt)])
    return ann, job, attempt


def warnings(ann) -> list[str]:
    items = ann.get("/v1/audit")["items"]
    return [each["detail"] for each in items if each["action"] == "job.idle"]


def test_a_tenant_who_agreed_is_warned_and_then_the_work_is_stopped(working: Working) -> None:
    ann, job, attempt = with_gpu(working, stop_idle="30 min")
    twin = working.twins[0]
    stands_idle(working, attempt, 14)
    assert warnings(ann) == []
    stands_idle(working, attempt, 25)
    assert len(warnings(ann)) == 1
    assert "1 GPU held and idle for 25 min" in warnings(ann)[0]
    assert "stopped as was agreed" in warnings(ann)[0]
    last = ann.get(f"/v1/jobs/{job}")["last"]
    assert (last["idle_us"], last["warned_us"]) == (25 * MINUTE, working.clock())
    stands_idle(working, attempt, 29)
    assert (len(warnings(ann)), twin.stops) == (1, [])
    working.clock.move(5 * MINUTE)
    stands_idle(working, attempt, 30)
    assert [each.why for each in twin.stops] == ["idle"]
    assert "stopped, as was agreed" in twin.stops[0].reason
    twin.report([twin.ended(attempt, "idle", cause="tenant")])
    assert ann.get(f"/v1/jobs/{job}")["end_code"] == "job/idle"
    holds(working)


def test_one_who_did_not_agree_is_told_alone_and_again_after_work(working: Working) -> None:
    ann, _, attempt = with_gpu(working)
    twin = working.twins[0]
    for minutes in (16, 400):
        working.clock.move(MINUTE)
        stands_idle(working, attempt, minutes)
    assert (len(warnings(ann)), twin.stops) == (1, [])
    stands_idle(working, attempt, 0)
    stands_idle(working, attempt, 15)
    assert (len(warnings(ann)), twin.stops) == (2, [])


def test_work_without_gpus_is_never_idle(working: Working) -> None:
    ann = ready(working)
    _, attempt = started(working, ann, stop_idle="1 min")
    working.twins[0].report([working.twins[0].began(attempt)])
    stands_idle(working, attempt, 100)
    assert (warnings(ann), working.twins[0].stops) == ([], [])

"""What a server process does unasked: it gives out places when something changed, and looks after what was left.

Decides when to look, not what to do. A look that fails is logged and tried again later; it never ends the server, and never stops the others.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import structlog
from starlette.concurrency import run_in_threadpool

from ouvrage.base.time import HOUR, SECOND
from ouvrage.server.context import Platform
from ouvrage.server.engine import Engine
from ouvrage.server.health import HealthLoop
from ouvrage.server.hooked import Sender
from ouvrage.server.intake import Intake
from ouvrage.server.keeping import keep
from ouvrage.server.power import cycle_of
from ouvrage.server.reconcile import reconcile
from ouvrage.server.services.rented import hold
from ouvrage.server.services.upkeep import tidy
from ouvrage.server.services.uses import Uses
from ouvrage.server.wakes import ENGINE, HEALTH

_log = structlog.get_logger("ouvrage.server")
_TO_END = "end"
_BREATH_S = 0.02


@asynccontextmanager
async def at_work(
    platform: Platform, engine: Engine, intake: Intake, uses: Uses
) -> AsyncGenerator[None]:
    """The loops run while the application does, and telemetry is taken."""
    sender = Sender(platform, engine.token)
    slurm = (
        platform.settings.slurm is not None
    )  # what happens there is told by nobody, and a look at it costs processes
    often_us, breath_s = (SECOND, 0.1) if slurm else (None, _BREATH_S)
    loops = [
        _Loop(platform, "placement", engine.observe, ENGINE, every_us=often_us, breath_s=breath_s),
        _Loop(platform, "reconcile", lambda: reconcile(platform, engine.token), _TO_END),
        _Loop(
            platform,
            "health",
            HealthLoop(platform, engine.token, cycle_of(platform.state_dir)).look,
            HEALTH,
        ),
        _Loop(platform, "services", uses.state, _TO_END),
        _Loop(platform, "webhooks", sender.look, _TO_END),
        _Loop(platform, "telemetry", lambda: keep(platform, intake), _TO_END),
        _Loop(platform, "upkeep", lambda: tidy(platform), _TO_END, every_us=HOUR),
    ]
    if platform.settings.rented is not None:
        loops.append(_Loop(platform, "rented", lambda: hold(platform), ENGINE))
    if platform.limits.tick_us == 0:
        loops = []
    await run_in_threadpool(intake.refill, platform.store, platform.source, platform.state_dir)
    intake.start()
    for loop in loops:
        loop.start()
    try:
        yield
    finally:
        platform.wakes.close()
        for loop in loops:
            await run_in_threadpool(loop.join)
        await run_in_threadpool(sender.close)
        engine.close()
        await run_in_threadpool(lambda: uses.state(all_=True))
        await run_in_threadpool(intake.stop)


class _Loop(threading.Thread):
    """Looks when woken, and every so often by itself."""

    def __init__(
        self,
        platform: Platform,
        name: str,
        look: Callable[[], object],
        topic: str,
        every_us: int | None = None,
        breath_s: float = _BREATH_S,
    ) -> None:
        super().__init__(name=f"ouvrage-{name}", daemon=True)
        self._platform = platform
        self._look = look
        self._topic = topic
        self._every_us = every_us or platform.limits.tick_us
        self._breath = threading.Event()
        self._breath_s = breath_s

    def run(self) -> None:
        """Until the server ends."""
        wakes = self._platform.wakes
        seconds = self._every_us / SECOND
        with wakes.listening(self._topic) as ear:
            while not wakes.closed:
                self._once()
                self._breath.wait(self._breath_s)  # what comes meanwhile is looked at together
                ear.wait(seconds)

    def _once(self) -> None:
        try:
            self._look()
        except Exception as error:  # noqa: BLE001 - whatever went wrong now must not end later looks
            _log.error("loop.failed", loop=self.name, exc_info=error)

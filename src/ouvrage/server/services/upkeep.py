"""What a server forgets by itself: sessions that are over, answers nobody will ask for again, failures long past.

Decides how long each is kept. It changes nothing that a request could still depend on, so it may run at any time and twice.
"""

from __future__ import annotations

from ouvrage.server.context import Platform
from ouvrage.server.services.signing_in import FORGIVEN_AFTER
from ouvrage.store.platform.answers import forget_answers, forget_throttles
from ouvrage.store.platform.people import end_old_sessions


def tidy(platform: Platform) -> None:
    """Forget what is over."""
    with platform.writing() as tx:
        end_old_sessions(tx.connection, tx.now_us)
        forget_answers(tx.connection, tx.now_us - platform.settings.answers_us)
        forget_throttles(tx.connection, tx.now_us - FORGIVEN_AFTER)

"""A write that may be sent twice and happens once.

Decides what a repetition is: the same asker, key, address and body. The answer is kept in the transaction of the write itself,
so that neither stands without the other. A secret that an answer shows once is not kept: the repetition says null there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ouvrage.base.canonical import canonical, sha256_hex
from ouvrage.server.context import Actor, Platform
from ouvrage.server.errors import conflict
from ouvrage.store.platform.answers import Kept, keep_answer, kept_answer
from ouvrage.store.transaction import Transaction
from ouvrage.wire.api import Answer
from ouvrage.wire.runner import Message

A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A request to change something: who asks, under which key, and where (method and path)."""

    platform: Platform
    actor: Actor
    key: str
    where: str

    def do(self, kind: type[A], asked: Message | None, work: Callable[[Transaction], A]) -> A:
        """Do ``work`` in one transaction and keep its answer, or give the answer kept before.

        Raises ``Refused`` 409 ``idempotency/other-request`` where the key stands for another request.
        """
        body = asked.model_dump(mode="json") if asked is not None else None
        request = sha256_hex(canonical([self.where, body]))
        with self.platform.writing() as tx:
            before = kept_answer(tx.connection, self.actor.id, self.key)
            if before is not None:
                return self._again(kind, before, request)
            answer = work(tx)
            kept = answer.model_copy(update=dict.fromkeys(kind.SHOWN_ONCE))
            keep_answer(
                tx.connection,
                self.actor.id,
                self.key,
                Kept(request=request, answer=kept.model_dump_json()),
                tx.now_us,
            )
            return answer

    def _again(self, kind: type[A], before: Kept, request: str) -> A:
        if before.request != request:
            raise conflict(
                "idempotency/other-request",
                "this Idempotency-Key was used for another request",
                hint="a new request takes a new key; a repetition repeats all of it",
                field="Idempotency-Key",
            )
        return kind.model_validate_json(before.answer)

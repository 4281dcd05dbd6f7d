"""Answers kept for requests that may be repeated, and counts of failed attempts to sign in.

Keeps and finds; what a repetition means and how long somebody must wait is ``server``'s to decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from ouvrage.store.platform.tenancy_tables import answers, throttles


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was asked under a key (a hash) and what was answered (JSON)."""

    request: str
    answer: str


def kept_answer(connection: Connection, actor: str, key: str) -> Kept | None:
    """The answer kept for somebody's key."""
    query = select(answers.c.request, answers.c.answer)
    query = query.where(answers.c.actor == actor, answers.c.idempotency_key == key)
    row = connection.execute(query).first()
    return Kept(request=row[0], answer=row[1]) if row else None


def keep_answer(connection: Connection, actor: str, key: str, kept: Kept, now_us: int) -> None:
    """Keep an answer under a key that is new."""
    connection.execute(
        insert(answers).values(
            actor=actor,
            idempotency_key=key,
            request=kept.request,
            answer=kept.answer,
            at_us=now_us,
        )
    )


def forget_answers(connection: Connection, before_us: int) -> None:
    """Forget the answers that were given before a moment."""
    connection.execute(delete(answers).where(answers.c.at_us < before_us))


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """How often an attempt under a name failed, when last, and until when it is refused unseen."""

    name: str
    failures: int
    last_us: int
    until_us: int


def throttle_of(connection: Connection, name: str) -> Throttle | None:
    """What is known of a name."""
    row = connection.execute(select(throttles).where(throttles.c.name == name)).first()
    return Throttle(**dict(row._mapping)) if row else None


def put_throttle(connection: Connection, value: Throttle) -> None:
    """Say what is known of a name now."""
    row = {"failures": value.failures, "last_us": value.last_us, "until_us": value.until_us}
    where = throttles.c.name == value.name
    if not connection.execute(update(throttles).where(where).values(**row)).rowcount:
        connection.execute(insert(throttles).values(name=value.name, **row))


def forget_throttle(connection: Connection, name: str) -> None:
    """Forget a name's failures."""
    connection.execute(delete(throttles).where(throttles.c.name == name))


def forget_throttles(connection: Connection, before_us: int) -> None:
    """Forget the names whose last failure was before a moment."""
    connection.execute(delete(throttles).where(throttles.c.last_us < before_us))

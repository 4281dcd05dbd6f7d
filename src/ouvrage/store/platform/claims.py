"""Who of several server processes does a task: a row taken by compare-and-swap, with a token and an expiry.

Works alike on both databases and needs nobody to unlock after a crash: a claim that was not renewed in time is anyone's. What is done
under one must still be harmless when done twice, since a claim can run out while its holder is busy.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from ouvrage.store.platform.work_tables import claims


def take_claim(connection: Connection, name: str, token: str, *, now_us: int, for_us: int) -> bool:
    """Take or renew a claim until ``now_us + for_us``; False where another token's still holds.

    Call it within the writers' queue (``store.transaction``).
    """
    mine = (claims.c.name == name) & ((claims.c.token == token) | (claims.c.expires_us <= now_us))
    until = now_us + for_us
    taken = connection.execute(update(claims).where(mine).values(token=token, expires_us=until))
    if taken.rowcount:
        return True
    if connection.execute(select(claims.c.name).where(claims.c.name == name)).first() is not None:
        return False
    connection.execute(insert(claims).values(name=name, token=token, expires_us=until))
    return True


def put_claim(connection: Connection, name: str, token: str, *, now_us: int, for_us: int) -> None:
    """Note that this token holds a name until then, whoever held it before: where the world decides who does, not the claim."""
    drop = claims.c.name == name
    connection.execute(delete(claims).where(drop))
    connection.execute(insert(claims).values(name=name, token=token, expires_us=now_us + for_us))


def note_moment(connection: Connection, name: str, now_us: int) -> None:
    """Note when a name was heard of last: a claim that nobody holds, whose end is that moment."""
    put_claim(connection, name, "", now_us=now_us, for_us=0)


def moments(connection: Connection, prefix: str) -> dict[str, int]:
    """When each name of a prefix was heard of last, by what stands after the prefix."""
    like = claims.c.name.startswith(prefix, autoescape=True)
    rows = connection.execute(select(claims).where(like))
    return {row.name.removeprefix(prefix): row.expires_us for row in rows}


def claimant(connection: Connection, name: str, now_us: int) -> str | None:
    """Whose claim holds now."""
    holds = (claims.c.name == name) & (claims.c.expires_us > now_us)
    row = connection.execute(select(claims.c.token).where(holds)).first()
    return None if row is None else row.token


def drop_claim(connection: Connection, name: str, token: str) -> None:
    """Let go of a claim, if it is still this token's."""
    mine = (claims.c.name == name) & (claims.c.token == token)
    connection.execute(delete(claims).where(mine))

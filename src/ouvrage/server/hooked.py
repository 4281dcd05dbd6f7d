"""Webhooks at work: facts become deliveries, once each, and deliveries are sent until they arrive.

Decides what is worth telling, and when it is tried again: after ten seconds, doubled each time up to an hour, for a day. What is to be sent stands in the database
before anything is sent and is struck out after its receiver said so, so that it arrives at least once; a receiver knows it by its ``id``. Facts are looked
through in order behind a cursor that moves in the same transaction. One server process at a time does it, under a claim.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ouvrage.adapters.posting import Network, Posted, post, signature
from ouvrage.base.ids import code_of
from ouvrage.base.time import DAY, HOUR, SECOND
from ouvrage.ledger.facts import Recorded
from ouvrage.ledger.kinds import read
from ouvrage.model.machines import FenceSet
from ouvrage.model.tenancy import AuditEntry
from ouvrage.model.work import JobEnded
from ouvrage.server.context import Platform
from ouvrage.server.services.naming import owner
from ouvrage.store.platform.claims import take_claim
from ouvrage.store.platform.hooks import (
    DeliveryRow,
    HookRow,
    add_deliveries,
    change_delivery,
    due,
    facts_after,
    forget_old_deliveries,
    hook_of,
    hooks_of,
    last_fact,
    looked_up_to,
    put_looked,
)
from ouvrage.store.platform.machines import node_called
from ouvrage.store.platform.work import jobs_by_id
from ouvrage.store.transaction import Connection, Transaction
from ouvrage.wire.hooks import Event

CLAIM = "webhooks"
KEPT_US = 30 * DAY
FIRST_AGAIN_US, LONGEST_AGAIN_US, GIVEN_UP_US = 10 * SECOND, HOUR, DAY
_KINDS = (JobEnded.KIND, AuditEntry.KIND, FenceSet.KIND)
_AT_ONCE = 8
_MOST = 500
_ROUNDS = 100
_CLAIMED_US = 2 * 60 * SECOND

Told = tuple[Event, str, dict[str, object]]
"""An event, whose organisation's it is, and what is told of it."""


def look(platform: Platform, token: str) -> None:
    """Make deliveries of what happened, and send what is due."""
    with platform.writing() as tx:
        if not take_claim(tx.connection, CLAIM, token, now_us=tx.now_us, for_us=_CLAIMED_US):
            return
        _gather(platform, tx)
    for _ in range(_ROUNDS):
        if platform.wakes.closed or not _send(platform):
            return


def _gather(platform: Platform, tx: Transaction) -> None:
    """Facts since the last look, as deliveries; what happened before anybody listened is not told."""
    hooks = hooks_of(tx.connection, None)
    since = looked_up_to(tx.connection)
    if since is None or not hooks:
        put_looked(tx.connection, last_fact(tx.connection))
        return
    found = facts_after(tx.connection, since, _KINDS, _MOST)
    told = [
        (hook, entry, each)
        for entry in found
        for each in _told(tx.connection, entry)
        for hook in hooks
        if hook.org == each[1] and each[0] in hook.events.split() and hook.after_seq < entry.seq
    ]  # fmt: skip
    ids = sorted(platform.ids() for _ in told)  # ids of one moment rise by chance alone
    rows = [_delivery(id_, *each, tx.now_us) for id_, each in zip(ids, told, strict=True)]
    add_deliveries(tx.connection, rows)
    whole = len(found) < _MOST
    put_looked(tx.connection, last_fact(tx.connection) if whole else found[-1].seq)
    forget_old_deliveries(tx.connection, tx.now_us - KEPT_US)


def _delivery(id_: str, hook: HookRow, entry: Recorded, told: Told, now_us: int) -> DeliveryRow:
    event, org, data = told
    at_us = entry.fact.valid_to or entry.fact.valid_from
    body = {"id": id_, "event": event, "at_us": at_us, "organisation": org, "data": data}
    return DeliveryRow(
        delivery=id_, webhook=hook.webhook, org=org, event=event, body=json.dumps(body),
        at_us=now_us, tries=0, due_us=now_us,
    )  # fmt: skip


def _told(connection: Connection, entry: Recorded) -> Iterator[Told]:
    value = read(entry.fact)
    if isinstance(value, JobEnded):
        job = jobs_by_id(connection, [value.job]).get(value.job)
        if job is not None:
            data: dict[str, object] = {
                "job": value.job, "code": code_of(value.job), "name": job.name, "project": job.project,
                "state": value.state, "reason_code": value.code, "reason": value.reason,
            }  # fmt: skip
            yield "job.ended", job.org, data
            if value.code == "job/budget":
                yield "budget.stopped", job.org, data
    elif isinstance(value, AuditEntry):
        if value.action == "budget.warn" and value.org is not None:
            yield "budget.warned", value.org, {"project": value.target, "words": value.detail}
    elif isinstance(value, FenceSet) and value.held:
        node = node_called(connection, value.node)
        yield "node.fenced", owner(connection).org, {
            "node": value.node, "name": node.seen.name if node else None, "device": value.device,
            "holder": value.holder, "why": value.why,
        }  # fmt: skip


def _send(platform: Platform) -> bool:
    """Send the oldest that is due of each webhook; whether any arrived, so that the next may follow it."""
    with platform.reading() as connection:
        waiting = due(connection, platform.clock(), _MOST)
        hooks = {each.webhook: hook_of(connection, each.webhook) for each in waiting}
    pairs = [(each, hook) for each in waiting if (hook := hooks[each.webhook]) is not None]
    allowed = platform.settings.hook_networks
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="webhook") as pool:
        futures = [
            (each, pool.submit(_posted, hook, each, platform.clock(), allowed))
            for each, hook in pairs
        ]
        arrived = [_note(platform, each, future.result()) for each, future in futures]
    return any(arrived)


def _posted(hook: HookRow, each: DeliveryRow, now_us: int, allowed: tuple[Network, ...]) -> Posted:
    body = each.body.encode()
    headers = {
        "Ouvrage-Event": each.event,
        "Ouvrage-Delivery": each.delivery,
        "Ouvrage-Signature": signature(hook.secret, body, now_us // SECOND),
    }
    return post(hook.url, body, headers, allowed)


def _note(platform: Platform, each: DeliveryRow, came: Posted) -> bool:
    """Write down what came of a try; whether it arrived."""
    arrived = came.status is not None and 200 <= came.status < 300
    with platform.writing() as tx:
        tries = each.tries + 1
        if arrived:
            over = {"due_us": None, "done_us": tx.now_us}
        elif tx.now_us >= each.at_us + GIVEN_UP_US:
            over = {"due_us": None}
        else:
            pause = min(LONGEST_AGAIN_US, FIRST_AGAIN_US << min(tries - 1, 16))
            over = {"due_us": tx.now_us + pause}
        change_delivery(tx.connection, each.delivery, tries=tries, said=came.words[:200], **over)
    return arrived

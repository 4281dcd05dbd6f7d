"""Webhooks at work: facts become deliveries, once each, and deliveries are sent until they arrive.

Decides what is worth telling, and when it is tried again: after ten seconds, doubled each time up to an hour, for a day. What is to be sent stands in the database
before anything is sent and is struck out after its receiver said so, so that it arrives at least once; a receiver knows it by its ``id``. Facts are looked
through in order behind a cursor that moves in the same transaction. One server process at a time does it, under a claim.

Nobody waits for another's receiver: each webhook is served in a place of its own, in order, and what could use up the places is bounded: those of
one organisation, those that did not answer the last time, and how long one is served in a stretch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Condition

import structlog

from ouvrage.adapters.clock import monotonic_us
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
_PLACES, _PLACES_AGAIN, _PLACES_ORG = 32, 16, 4
"""How many webhooks are served at once: all, those whose last try failed, and those of one organisation."""
_STRETCH_US = 5 * SECOND
_MOST = 500
_CLAIMED_US = 2 * 60 * SECOND
_log = structlog.get_logger("ouvrage.server")

Told = tuple[Event, str, dict[str, object]]
"""An event, whose organisation's it is, and what is told of it."""


class Sender:
    """What one server process does for webhooks."""

    def __init__(self, platform: Platform, token: str) -> None:
        self._platform = platform
        self._token = token
        self._ours_until_us = 0
        self._pool = ThreadPoolExecutor(_PLACES, thread_name_prefix="webhook")
        self._served: dict[str, DeliveryRow] = {}
        self._changed = Condition()

    def look(self) -> None:
        """Make deliveries of what happened, and begin to send what is due; returns before it arrived."""
        with self._platform.writing() as tx:
            claimed_us = tx.now_us + _CLAIMED_US
            if not take_claim(
                tx.connection, CLAIM, self._token, now_us=tx.now_us, for_us=_CLAIMED_US
            ):
                return
            _gather(self._platform, tx)
        self._ours_until_us = claimed_us - _CLAIMED_US // 2
        self._begin()

    def settle(self) -> None:
        """Return when nothing is being sent."""
        with self._changed:
            self._changed.wait_for(lambda: not self._served)

    def close(self) -> None:
        """Begin nothing more, and wait for what is under way: its receiver may have taken it already."""
        self._ours_until_us = 0
        self._pool.shutdown(cancel_futures=True)

    def _begin(self) -> None:
        """Give places to webhooks for which something is due, the longest due first."""
        now_us = self._platform.clock()
        if self._platform.wakes.closed or now_us >= self._ours_until_us:
            return
        with self._platform.reading() as connection:
            waiting = due(connection, now_us, _MOST)
        with self._changed:
            for each in waiting:
                if each.webhook not in self._served and self._has_place(each):
                    self._served[each.webhook] = each
                    self._pool.submit(self._serve, each.webhook)

    def _has_place(self, wanted: DeliveryRow) -> bool:
        now = self._served.values()
        again = sum(each.tries > 0 for each in now) if wanted.tries else 0
        of_org = sum(each.org == wanted.org for each in now)
        return len(now) < _PLACES and again < _PLACES_AGAIN and of_org < _PLACES_ORG

    def _serve(self, webhook: str) -> None:
        """One webhook's deliveries in order, for a stretch or until one does not arrive; then the place is another's."""
        until_us = monotonic_us() + _STRETCH_US
        try:
            while self._sent(webhook) and monotonic_us() < until_us:
                pass
        except Exception as error:  # noqa: BLE001 - a place is given back whatever went wrong
            _log.error("webhook.failed", webhook=webhook, exc_info=error)
        finally:
            with self._changed:
                del self._served[webhook]
                self._changed.notify_all()
        self._begin()

    def _sent(self, webhook: str) -> bool:
        """Send the oldest that is due now, as it stands now; whether it arrived."""
        platform = self._platform
        with platform.reading() as connection:
            found = due(connection, platform.clock(), 1, webhook)
            hook = hook_of(connection, webhook)
        if not found or hook is None or platform.wakes.closed:
            return False
        came = _posted(hook, found[0], platform.clock(), platform.settings.hook_networks)
        return _note(platform, found[0], came)


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

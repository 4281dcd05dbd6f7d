"""What a platform's own facts tell the owner's books: its charges as earnings, its leases and attempts as states of devices.

Decides that a charge is earned by the GPU that its lease held, or by the node where that is none or several, through the channel
that the offer names; that a credit is work given back; and that a lease holds its devices while an attempt makes them work. So the
statement, the journal and the reconciliation read a platform as they read any other channel. An amount is what was charged, before tax.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ouvrage.base.numbers import decimal_text, number
from ouvrage.books.dues.charging import Charged
from ouvrage.books.dues.lease import Lease
from ouvrage.books.dues.record import DuesRecord
from ouvrage.books.known import Known
from ouvrage.model.earnings import Earning
from ouvrage.model.occupancy import DeviceState

_COMPONENTS = {"compute": "gpu", "storage": "storage"}
"""The component of earnings for a part of a plan; of any other part it is ``other``."""


def earnings_of(record: DuesRecord, devices: Collection[str]) -> Iterator[Known[Earning]]:
    """Every charge and credit of a lease that is known, as the earning of a channel.

    ``devices`` are those that the owner's books know by the platform's own names; of others the node earns.
    """
    leases = {each.lease: each for each in record.leases}
    for each in record.charges:
        lease = leases.get(each.value.lease)
        if lease is not None:
            yield _earning(record, each, lease, devices)


def _earning(
    record: DuesRecord, each: Charged, lease: Lease, known: Collection[str]
) -> Known[Earning]:
    value, offer = each.value, lease.offer
    component = "credit" if value.credits else _component(lease, value.rule)
    tenant = record.organisations.get(value.org)
    own = tenant is not None and tenant.side == "owner"
    timed = component == "gpu" and bool(lease.devices)
    devices = max(1, len(lease.devices))
    price = None if offer.rate is None else decimal_text(number(offer.rate) / devices)
    earning = Earning(
        channel="own-use" if own else offer.channel,
        about=_about(record, lease, known),
        component="own-use" if own and component != "credit" else component,
        amount=value.amount,
        currency=value.currency,
        fee="0",  # one's own tenants pay no platform
        sold_us=devices * (each.end - each.valid_from) if timed else None,
        list_price=price if timed else None,
        tenant=tenant.name if tenant else value.org,
        document=None,
    )
    return Known(
        value=earning, valid_from=each.valid_from, valid_to=max(each.end, each.valid_from + 1),
        grade=each.grade, key=each.key,
    )  # fmt: skip


def _component(lease: Lease, rule: str) -> str:
    parts = {each.name: each.part for version in lease.plan.versions for each in version.rules}
    return _COMPONENTS.get(parts.get(rule, "other"), "other")


def _about(record: DuesRecord, lease: Lease, known: Collection[str]) -> str:
    if len(lease.devices) == 1 and lease.devices[0] in known:
        return f"device:{lease.devices[0]}"
    return f"node:{record.nodes.get(lease.node, lease.node)}"


def states_of(record: DuesRecord, devices: Collection[str]) -> Iterator[Known[DeviceState]]:
    """Held while leased, working while an attempt ran; of the devices of each lease alone.

    Where the owner's books do not know them by these names, of as many of their node's.
    """
    for lease in record.leases:
        ended = lease.ended.at_us if lease.ended else lease.until_us
        said = _Said("held", "leased", lease.from_us, ended, lease.key)
        yield from _states(record, lease, lease.devices, devices, said)
        for ordered in record.inside.get(lease.lease, ()):
            known = record.attempts.get(ordered.attempt)
            if known is not None and known.end > known.valid_from:
                job = record.jobs.get(known.value.job)
                cause = f"job {job.spec.name if job else known.value.job}"[:200]
                said = _Said("working", cause, known.valid_from, known.end, known.key)
                yield from _states(record, lease, ordered.placed.devices, devices, said)


class _Said(NamedTuple):
    """In which state, why, from when to when, and the fact that says so."""

    state: str
    cause: str
    from_us: int
    to_us: int | None
    key: str


def _states(
    record: DuesRecord, lease: Lease, had: Sequence[str], known: Collection[str], said: _Said
) -> Iterator[Known[DeviceState]]:
    tenant = record.organisations.get(lease.org)
    own = tenant is not None and tenant.side == "owner"
    unknown = [device for device in had if device not in known]
    for device in (*(device for device in had if device in known), *([None] if unknown else [])):
        state = DeviceState(
            device=device, node=None if device else record.nodes.get(lease.node, lease.node),
            count=None if device else len(unknown), state=said.state, cause=said.cause,
            channel="own-use" if own else lease.offer.channel,
            tenant=tenant.name if tenant else lease.org, lease=lease.lease,
        )  # fmt: skip
        yield Known(
            value=state,
            valid_from=said.from_us,
            valid_to=said.to_us,
            grade=lease.grade,
            key=said.key,
        )

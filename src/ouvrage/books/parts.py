"""Which purchase a part of a machine came with: its price, its day, its warranty and who sold it.

Decides by the part's serial number, then by its slot where an owner named that, then by the GPU that the asset is
about; what was not bought apart came with the machine. There is one register of purchases, the owner's assets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ouvrage.base.grades import Grade
from ouvrage.books.known import Known
from ouvrage.books.record import OwnerRecord
from ouvrage.model.assets import Asset, AssetPart
from ouvrage.model.health import Part


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """A purchase: ``asset`` names it, ``price`` is decimal text, ``by`` says how the part was told to belong to it.

    ``by`` is ``serial``, ``slot``, ``device`` or ``node`` (it came with the whole machine, whose price this is).
    """

    asset: str
    price: str
    currency: str
    bought_us: int
    warranty_until: str | None
    supplier: str | None
    order: str | None
    by: str
    grade: Grade
    key: str


def bought(record: OwnerRecord, node: str, part: Part) -> Bought | None:
    """The purchase of a part of a node; None where its owner stated none."""
    gone = {each.value.asset for each in record.retirements}
    identities = {each.value.asset: each.value for each in record.asset_parts}
    ours = [each for each in record.assets if each.value.asset not in gone]
    about = _about(record, node, ours)
    for by, belongs in _WAYS:
        for asset in reversed(about):
            identity = identities.get(asset.value.asset)
            if belongs(asset.value, identity, node, part):
                return _bought(asset, identity, by)
    return None


def _about(record: OwnerRecord, node: str, assets: list[Known[Asset]]) -> list[Known[Asset]]:
    """The assets of a node and of the devices that were placed in it."""
    devices = {each.value.device for each in record.inside.get(node, ())}
    names = {f"node:{node}", *(f"device:{device}" for device in devices)}
    return [each for each in assets if each.value.about in names]


def _by_serial(_asset: Asset, identity: AssetPart | None, _node: str, part: Part) -> bool:
    return identity is not None and part.serial is not None and part.serial in identity.serials


def _by_slot(_asset: Asset, identity: AssetPart | None, _node: str, part: Part) -> bool:
    return identity is not None and f"{part.kind}:{part.slot}" in identity.slots


def _by_device(asset: Asset, _identity: AssetPart | None, _node: str, part: Part) -> bool:
    return part.kind == "gpu" and part.serial is not None and asset.about == f"device:{part.serial}"


def _by_node(asset: Asset, identity: AssetPart | None, node: str, part: Part) -> bool:
    """The machine itself: an asset of the node that names no parts. Software is not bought with it."""
    if part.kind in ("software", "firmware") or asset.about != f"node:{node}":
        return False
    return identity is None or not (identity.serials or identity.slots)


_WAYS = (
    ("serial", _by_serial),
    ("slot", _by_slot),
    ("device", _by_device),
    ("node", _by_node),
)


def _bought(asset: Known[Asset], identity: AssetPart | None, by: str) -> Bought:
    value = asset.value
    return Bought(
        asset=value.asset, price=value.price, currency=value.currency, bought_us=asset.valid_from,
        warranty_until=value.warranty_until, supplier=identity and identity.supplier,
        order=identity and identity.order, by=by, grade=asset.grade, key=asset.key,
    )  # fmt: skip


def named_by_owner(record: OwnerRecord, node: str) -> Iterator[tuple[str, str]]:
    """Each asset of a node with a serial number that its owner named, to find those that are not there."""
    gone = {each.value.asset for each in record.retirements}
    about = {each.value.asset for each in _about(record, node, list(record.assets))} - gone
    for each in record.asset_parts:
        if each.value.asset in about:
            yield from ((each.value.asset, serial) for serial in each.value.serials)

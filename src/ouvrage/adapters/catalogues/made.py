"""An offer with every field that a row did not state left unknown.

Decides the few things that follow from a provider's name: of what kind it is, and which rate plan
holds its increments. An unknown name is a GPU cloud without a plan.
"""

from __future__ import annotations

from typing import Any

from ouvrage.adapters.catalogues.rows import Context
from ouvrage.model.offers import MarketOffer

_HYPERSCALERS = {
    *("aws", "amazon", "gcp", "google", "azure", "microsoft", "oci", "oracle", "ibm"),
    *("alibaba", "tencent"),
}
_HOSTS = {
    *("vast", "vastai", "akash", "golem", "salad", "ionet", "nosana", "clore", "tensordock"),
    *("lium", "spheron", "hyperbolic"),
}
_PLANS = {
    "aws": "ec2-linux",
    "amazon": "ec2-linux",
    "amazonec2": "ec2-linux",
    "gcp": "google-cloud",
    "googlecloud": "google-cloud",
    "azure": "azure-per-second",
    "lambda": "lambda",
    "lambdalabs": "lambda",
    "runpod": "runpod",
    "vast": "vast",
    "vastai": "vast",
    "coreweave": "coreweave",
    "genesiscloud": "genesis-cloud",
    "genesis": "genesis-cloud",
    "ovh": "ovh-from-creation",
    "ovhcloud": "ovh-from-creation",
    "scaleway": "scaleway",
}


def squeezed(provider: str) -> str:
    """A provider's name without what people write differently."""
    return "".join(c for c in provider.lower() if c.isalnum())


def kind_of(provider: str) -> str:
    """Hyperscaler, GPU cloud or decentralised host."""
    name = squeezed(provider)
    if name in _HYPERSCALERS or name in ("googlecloud", "amazonec2"):
        return "hyperscaler"
    return "decentralised-host" if name in _HOSTS else "gpu-cloud"


def plan_of(provider: str) -> str | None:
    """The shipped rate plan of a provider, or None."""
    return _PLANS.get(squeezed(provider))


def made(context: Context, **stated: Any) -> MarketOffer:
    """An offer from what a row states; what it does not state is unknown."""
    provider = stated["provider"]
    unstated: dict[str, Any] = {
        "key": "",
        "catalogue": context.catalogue,
        "provider_kind": kind_of(provider),
        "per": "h",
        "split": "node",
        "tax": "unknown",
        "plan": plan_of(provider),
        "bundled": (),
        "quirks": (),
        "first_read": context.read_on,
        "source": context.source or f"{context.catalogue}, {context.file.rpartition('/')[2]}",
    }
    for name in (
        *("region", "gpu", "gpu_memory_mib", "vcpus", "memory_mib", "disk_gb", "mtbf_h"),
        *("storage_gb_month", "egress_gb", "ingress_gb", "interconnect_gb_s"),
        *("counterparty", "terms", "dated"),
    ):
        unstated[name] = None
    return MarketOffer(**{**unstated, **stated})

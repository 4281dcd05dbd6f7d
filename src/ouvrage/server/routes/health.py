"""``/v1/health``: whether the server answers and its store can be read.

Says nothing else, since anybody may ask.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends

from ouvrage import __version__
from ouvrage.server.access import PlatformDep, acts, stranger
from ouvrage.server.authorise import PUBLIC
from ouvrage.wire.api import Health

router = APIRouter(tags=["server"])


@router.get("/v1/health", dependencies=[Depends(stranger)], **acts(PUBLIC))
def health(platform: PlatformDep) -> Health:
    """The server answers, and so does its store."""
    platform.store.head()
    return Health(status="ok", version=__version__)

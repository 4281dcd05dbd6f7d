"""A platform with two tenants and somebody in every role: who asks in the matrices of rights."""

from __future__ import annotations

from ouvrage.model.tenancy import OWNER_ROLES, ROLES
from ouvrage.server.credentials import new_secret
from ouvrage.store.platform.people import NodeKeyRow, add_node_key
from tests.platform.samples import World
from tests.support.server import Running

WHO = (*ROLES, "project-user", "rival", "node", "nobody")


def peopled(server: Running) -> World:
    """The tenants acme and rival, acme's project vision, and a client for each of ``WHO``."""
    made = World(server)
    paying = {"billing": "credit", "credit_limit": "1000000"}
    for name in ("acme", "rival"):
        told = server.owner.post("/v1/organisations", {"name": name, "admin": "boss", **paying})
        made.orgs[name] = told["organisation"]["org"]
    made.vision = server.owner.post("/v1/projects", {"name": "vision", "org": "acme"})["project"]
    for who in WHO:
        if who == "node":
            made.clients[who] = server.client(_node(made))
        elif who == "nobody":
            made.clients[who] = server.client(None)
        else:
            made.logins[who] = _member(made, who)
            made.clients[who] = server.signed_in(*made.logins[who])
    return made


def _member(world: World, who: str) -> tuple[str, str]:
    """The login and password of a new member."""
    role = {"project-user": "tenant-user", "rival": "tenant-admin"}.get(who, who)
    org = "owner" if role in OWNER_ROLES else "rival" if who == "rival" else "acme"
    project = "acme/main" if who == "project-user" else None
    body = {"login": world.new("who"), "role": role, "org": org, "project": project}
    made = world.server.owner.post("/v1/members", body)
    return made["member"]["login"], made["password"]


def _node(world: World) -> str:
    platform = world.server.platform
    made = new_secret(platform, "node key")
    with platform.writing() as tx:
        row = NodeKeyRow(
            node_key=made.id, node=platform.ids(), hash=made.hash, created_us=tx.now_us
        )
        add_node_key(tx.connection, row)
    return made.text

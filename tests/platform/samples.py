"""One good request for every address of the server: what the matrix of rights is made from.

A sample says what it is about (``of``: the organisation acme, its project ``vision``, or nothing in particular) and makes, as the
owner, whatever its request needs, so that the same sample can be asked by everybody in turn.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tests.support.server import Client, Running

_NUMBERS = count(1)


@dataclass
class World:
    """A platform with two tenants: acme, which is asked about, and rival, which must learn nothing of it."""

    server: Running
    orgs: dict[str, str] = field(default_factory=dict)
    clients: dict[str, Client] = field(default_factory=dict)
    logins: dict[str, tuple[str, str]] = field(default_factory=dict)
    vision: str = ""

    def new(self, word: str) -> str:
        """A name that was never used."""
        return f"{word}-{next(_NUMBERS)}"

    def member(self, role: str = "tenant-user", org: str = "acme") -> str:
        body = {"login": self.new("m"), "role": role, "org": org}
        return self.server.owner.post("/v1/members", body)["member"]["user"]

    def token(self) -> str:
        body = {"name": "x", "scopes": ["all"], "machine": self.new("m"), "role": "tenant-user"}
        return self.server.owner.post("/v1/tokens", {**body, "org": "acme"})["token"]

    def key(self) -> dict[str, str]:
        text = b"".join(len(p).to_bytes(4, "big") + p for p in (b"ssh-ed25519", os.urandom(32)))
        return {"key": f"ssh-ed25519 {base64.b64encode(text).decode()}", "name": self.new("key")}

    def hook(self) -> str:
        for each in self.server.owner.get("/v1/webhooks?org=acme")["items"]:
            self.server.owner("DELETE", f"/v1/webhooks/{each['webhook']}")
        body = {"url": "https://example.org/x", "org": "acme"}
        return self.server.owner.post("/v1/webhooks", body)["webhook"]["webhook"]

    def tenant(self) -> str:
        name = self.new("tenant")
        self.server.owner.post("/v1/organisations", {"name": name})
        return name

    def project(self) -> str:
        body = {"name": self.new("p"), "org": "acme"}
        return self.server.owner.post("/v1/projects", body)["project"]


@dataclass(frozen=True)
class Sample:
    """A request: what it is about, its path and its body, made anew for every one who asks."""

    of: str | None = None
    path: Callable[[World], str] | None = None
    body: Callable[[World], Any] = lambda _: None


ACME = "acme"
VISION = "vision"

SAMPLES: dict[tuple[str, str], Sample] = {
    ("GET", "/v1/health"): Sample(),
    ("GET", "/v1/today"): Sample(),
    ("GET", "/v1/status"): Sample(),
    ("POST", "/v1/login"): Sample(
        body=lambda world: {"login": "admin", "password": world.server.password}
    ),
    ("POST", "/v1/logout"): Sample(),
    ("GET", "/v1/me"): Sample(),
    ("POST", "/v1/me/password"): Sample(body=lambda _: {"old": "wrong", "new": "new-password-1"}),
    ("GET", "/v1/organisations"): Sample(),
    ("POST", "/v1/organisations"): Sample(body=lambda world: {"name": world.new("made")}),
    ("GET", "/v1/organisations/{org}"): Sample(ACME, lambda _: "/v1/organisations/acme"),
    ("PATCH", "/v1/organisations/{org}"): Sample(
        ACME, lambda _: "/v1/organisations/acme", lambda _: {"billing": "credit"}
    ),
    ("POST", "/v1/organisations/{org}/close"): Sample(
        "other", lambda world: f"/v1/organisations/{world.tenant()}/close", lambda _: {}
    ),
    ("POST", "/v1/organisations/{org}/reopen"): Sample(
        ACME, lambda _: "/v1/organisations/acme/reopen"
    ),
    ("GET", "/v1/projects"): Sample(),
    ("POST", "/v1/projects"): Sample(
        ACME, body=lambda world: {"name": world.new("p"), "org": "acme"}
    ),
    ("GET", "/v1/projects/{project}"): Sample(VISION, lambda world: f"/v1/projects/{world.vision}"),
    ("PATCH", "/v1/projects/{project}"): Sample(
        VISION, lambda world: f"/v1/projects/{world.vision}", lambda _: {"closed": False}
    ),
    ("GET", "/v1/members"): Sample(ACME, lambda _: "/v1/members?org=acme"),
    ("POST", "/v1/members"): Sample(
        ACME,
        body=lambda world: {"login": world.new("m"), "role": "tenant-user", "org": "acme"},
    ),
    ("DELETE", "/v1/members/{member}"): Sample(ACME, lambda world: f"/v1/members/{world.member()}"),
    ("POST", "/v1/members/{member}/password"): Sample(
        ACME, lambda world: f"/v1/members/{world.member()}/password"
    ),
    ("GET", "/v1/tokens"): Sample(),
    ("POST", "/v1/tokens"): Sample(body=lambda _: {"name": "t", "scopes": ["all"]}),
    ("DELETE", "/v1/tokens/{token}"): Sample(ACME, lambda world: f"/v1/tokens/{world.token()}"),
    ("GET", "/v1/webhooks"): Sample(ACME, lambda _: "/v1/webhooks?org=acme"),
    ("POST", "/v1/webhooks"): Sample(
        ACME, body=lambda world: world.hook() and {"url": "https://example.org/y", "org": "acme"}
    ),
    ("DELETE", "/v1/webhooks/{webhook}"): Sample(
        ACME, lambda world: f"/v1/webhooks/{world.hook()}"
    ),
    ("GET", "/v1/webhooks/{webhook}/deliveries"): Sample(
        ACME, lambda world: f"/v1/webhooks/{world.hook()}/deliveries"
    ),
    ("GET", "/v1/keys"): Sample(),
    ("POST", "/v1/keys"): Sample(body=World.key),
    ("DELETE", "/v1/keys/{ssh_key}"): Sample(path=lambda _: "/v1/keys/none"),
    ("GET", "/v1/audit"): Sample(ACME, lambda _: "/v1/audit?org=acme"),
}

RIGHTS = {("DELETE", "/v1/tokens/{token}"): "token.revoke"}
"""Where an address is open to everybody about their own and the sample is about another's: the right to that."""
REFUSED_ANYWAY = {
    ("POST", "/v1/me/password"): 422,
    ("DELETE", "/v1/keys/{ssh_key}"): 404,
    ("GET", "/v1/status"): 404,
}
"""Samples that are refused for another reason once the right is there, and how."""

"""An identity provider on loopback: discovery, keys, authorization with PKCE, and signed ID tokens.

It signs in whomever a test puts into ``claims``, checks what a provider checks (the client's secret, the redirect, the verifier, that a
code is used once), and lies where ``lie`` says so, so that each check on the other side can be seen to fail.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "ouvrage", "a secret of the provider's"


@dataclass
class LocalProvider:
    """A provider: whom it signs in, and how it lies."""

    url: str
    redirect: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    who: dict[str, Any] = field(default_factory=dict)
    lie: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    signs_with: RSAKey | None = None

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.lie.get("issuer", self.url),
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "userinfo_endpoint": f"{self.url}/who",
        }

    def authorize(self, query: dict[str, str]) -> str:
        assert (query["client_id"], query["response_type"]) == (CLIENT, "code")
        assert query["redirect_uri"] == self.redirect
        assert query["code_challenge_method"] == "S256"
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{self.redirect}?{urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        secret = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        asked = self.codes.pop(form["code"], None)
        made = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(made).rstrip(b"=").decode()
        good = asked and secret == f"{CLIENT}:{SECRET}" and challenge == asked["code_challenge"]
        if not good or not asked or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], **self.claims, **self.lie.get("claims", {})}
        key = self.signs_with or self.key
        signed = jwt.encode({"alg": "RS256", "kid": self.lie.get("kid", "one")}, claims, key)
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": signed}


@contextmanager
def local_provider() -> Iterator[LocalProvider]:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.provider = LocalProvider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.provider
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


class _Server(ThreadingHTTPServer):
    provider: LocalProvider


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return

    @property
    def provider(self) -> LocalProvider:
        assert isinstance(self.server, _Server)
        return self.server.provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/openid-configuration":
            self._say(200, self.provider.discovery())
        elif parts.path == "/who":
            good = self.headers.get("Authorization") == "Bearer x"
            self._say(200 if good else 401, self.provider.who if good else {})
        elif parts.path == "/keys":
            self._say(200, {"keys": [self.provider.key.as_dict(private=False)]})
        else:
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self.send_response(302)
            self.send_header("Location", self.provider.authorize(query))
            self.send_header("Content-Length", "0")
            self.end_headers()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self._say(*self.provider.token(form, self.headers.get("Authorization", "")))

    def _say(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

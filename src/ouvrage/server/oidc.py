"""Signing in with an identity provider, by OpenID Connect's authorization code with PKCE.

Decides what of a provider's word is believed: an ID token signed by a key it publishes, for this client, with the nonce of this very
sign-in (OpenID Connect Core 1.0, 3.1.3.7; the claims are judged by Authlib). Who that is *here* is decided by an administrator
beforehand: a member with that e-mail address, which the provider must call verified, and from the first sign-in on the provider's own
unchanging id for them. Nobody becomes a member by signing in.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ouvrage.base.time import MINUTE, SECOND
from ouvrage.server.context import Actor, Oidc, Platform
from ouvrage.server.errors import Refused, conflict
from ouvrage.server.services.members import PENDING
from ouvrage.server.services.signing_in import actor_for
from ouvrage.store.platform.people import User, change_user, users_known_as
from ouvrage.store.platform.tenancy import organisation_of

ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
_LEEWAY_S, _TIMEOUT_S, _LARGEST = 60, 10.0, 1 << 20
_KEYS_KEPT = MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in under way: where the browser goes, and what it keeps until it is back."""

    address: str
    kept: str


class Provider:
    """The identity provider of a platform; what it publishes is read once, its keys anew when one is missing."""

    def __init__(self, oidc: Oidc, platform: Platform) -> None:
        self._oidc = oidc
        self._platform = platform
        self._lock = threading.Lock()
        self._metadata: dict[str, Any] | None = None
        self._keys: KeySet | None = None
        self._keys_us = 0
        trust = (
            True if oidc.issuer.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        )
        self._http = httpx2.Client(
            timeout=_TIMEOUT_S, follow_redirects=False, trust_env=False, verify=trust
        )

    def begin(self, org: str | None, following: str) -> Begun:
        """Send a browser to the provider."""
        state, nonce, verifier = (_word(self._platform.chance(32)) for _ in range(3))
        address = prepare_grant_uri(
            self._published()["authorization_endpoint"],
            self._oidc.client_id,
            "code",
            redirect_uri=self._oidc.redirect,
            scope=self._oidc.scope,
            state=state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        kept = {"s": state, "n": nonce, "v": verifier, "o": org, "f": following}
        return Begun(address=address, kept=_packed(kept))

    def finish(
        self, kept: str, answer: Mapping[str, str], address: str | None
    ) -> tuple[Actor, str]:
        """Who came back from the provider, and where they wanted to go. ``Refused`` where it does not hold."""
        begun = _unpacked(kept)
        if begun is None or not answer.get("state") or answer["state"] != begun["s"]:
            raise _refused(
                "login/oidc-stale", "this sign-in was not begun in this browser, or long ago"
            )
        if "code" not in answer:
            raise _refused(
                "login/oidc", f"the provider says: {answer.get('error', 'nothing')[:60]}"
            )
        token = self._token(answer["code"], begun["v"])
        claims = self._claims(token, begun["n"])
        user = self._member(str(claims["sub"]), self._email(token, claims), begun["o"])
        return actor_for(self._platform, user, address), begun["f"]

    def _token(self, code: str, verifier: str) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._oidc.redirect,
            "code_verifier": verifier,
        }
        auth = (self._oidc.client_id, self._oidc.client_secret)
        return self._read("POST", self._published()["token_endpoint"], data=form, auth=auth)

    def _claims(self, token: dict[str, Any], nonce: str) -> CodeIDToken:
        try:
            signed = self._decoded(str(token.get("id_token", "")))
            claims = CodeIDToken(
                signed.claims,
                signed.header,
                options={
                    "iss": {"essential": True, "value": self._oidc.issuer},
                    "aud": {"essential": True, "value": self._oidc.client_id},
                },
                params={
                    "nonce": nonce,
                    "client_id": self._oidc.client_id,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(now=self._platform.clock() // SECOND, leeway=_LEEWAY_S)
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise _refused(
                "login/oidc-token", f"the provider's token does not hold: {type(error).__name__}"
            ) from error
        return claims

    def _decoded(self, text: str) -> jwt.Token:
        try:
            return jwt.decode(text, self._key_set(), algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            if not self._forget_keys():
                raise
            return jwt.decode(text, self._key_set(), algorithms=ALGORITHMS)  # it may have new ones

    def _forget_keys(self) -> bool:
        """Ask for the keys again next time; not more often than once a minute, whoever makes us."""
        with self._lock:
            if self._platform.clock() < self._keys_us + _KEYS_KEPT:
                return False
            self._keys = None
            return True

    def _key_set(self) -> KeySet:
        with self._lock:
            keys = self._keys
        if keys is None:
            found = self._read("GET", self._published()["jwks_uri"])
            keys = KeySet.import_key_set({"keys": found.get("keys", [])})
            with self._lock:
                self._keys, self._keys_us = keys, self._platform.clock()
        return keys

    def _email(self, token: dict[str, Any], claims: CodeIDToken) -> str:
        """The address that the provider vouches for, empty for none.

        It may stand in the token or in the answer to who the token is for (OpenID Connect Core 1.0, 5.4), which then
        must be about the same person (5.3.2).
        """
        told: Mapping[str, Any] = claims
        endpoint = str(self._published().get("userinfo_endpoint", ""))
        if (
            "email" not in claims
            and token.get("access_token")
            and _safe(endpoint, self._oidc.issuer)
        ):
            headers = {"Authorization": f"Bearer {token['access_token']}"}
            told = self._read("GET", endpoint, headers=headers)
            if told.get("sub") != claims["sub"]:
                raise _refused("login/oidc-token", "the provider speaks of another person")
        verified = told.get("email_verified") is True
        return str(told.get("email", "")).strip().lower() if verified else ""

    def _member(self, subject: str, email: str, org: str | None) -> User:
        """The member whom an administrator meant."""
        issuer = self._oidc.issuer
        with self._platform.writing() as tx:
            found = users_known_as(tx.connection, issuer, subject)
            if email:
                for user in users_known_as(tx.connection, PENDING, email):
                    if user.org not in {each.org for each in found}:
                        change_user(tx.connection, user.user_id, issuer=issuer, subject=subject)
                        found.append(user)
            named = organisation_of(tx.connection, org) if org else None
        if org:
            found = [user for user in found if named is not None and user.org == named.org]
        if not found:
            raise _refused("login/oidc-nobody", "you are known to the provider, but no member here")
        if len(found) > 1:
            raise conflict(
                "login/oidc-which",
                f"you are a member of {len(found)} organisations here",
                hint="/oidc/start?org=NAME signs you in to one of them",
            )
        return found[0]

    def _published(self) -> dict[str, Any]:
        """What the provider says of itself (OpenID Connect Discovery 1.0, section 4), read once."""
        with self._lock:
            metadata = self._metadata
        if metadata is None:
            address = f"{self._oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
            metadata = self._read("GET", address)
            if metadata.get("issuer") != self._oidc.issuer:
                raise _unreachable("it calls itself by another name than `issuer` in server.toml")
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                if not _safe(str(metadata.get(name, "")), self._oidc.issuer):
                    raise _unreachable(f"its {name} is no address to be trusted")
            with self._lock:
                self._metadata = metadata
        return metadata

    def _read(self, method: str, address: str, **more: Any) -> dict[str, Any]:
        try:
            answer = self._http.request(method, address, **more)
            answer.raise_for_status()
            value = answer.json() if len(answer.content) <= _LARGEST else None
        except (httpx2.HTTPError, ValueError) as error:
            raise _unreachable(type(error).__name__) from error
        if not isinstance(value, dict):
            raise _unreachable("its answer is none")
        return value


def _safe(address: str, issuer: str) -> bool:
    """Whether an address that a provider names is as safe to ask as the provider itself."""
    return address.startswith("https://") or (
        issuer.startswith("http://") and address.startswith("http://")
    )


def _word(chance: bytes) -> str:
    return base64.urlsafe_b64encode(chance).rstrip(b"=").decode("ascii")


def _packed(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode("ascii")


def _unpacked(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
    except (ValueError, UnicodeError):
        return None
    whole = isinstance(value, dict) and set(value) == {"s", "n", "v", "o", "f"}
    return value if whole else None


def _refused(code: str, message: str) -> Refused:
    return Refused(
        code, message, status=403, hint="begin again at /sign-in, or ask your administrator"
    )


def _unreachable(why: str) -> Refused:
    return Refused(
        "login/oidc-provider",
        f"the identity provider could not be asked: {why}",
        status=502,
        hint="sign in with a password, or try later",
    )

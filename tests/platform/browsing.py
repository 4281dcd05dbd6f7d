"""Browsers that have signed in: pages and forms as people ask for them, and every page and form there is."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import httpx2

from ouvrage.server.app import PAGES
from ouvrage.server.identify import SESSION_COOKIE
from ouvrage.server.pages.frame import VISIT, csrf_of
from tests.support.server import NO_CA


@dataclass(frozen=True)
class Browser:
    """One browser. ``cookie`` None: nobody has signed in."""

    http: httpx2.Client
    cookie: str | None = None

    @classmethod
    def at(cls, url: str) -> Browser:
        return cls(httpx2.Client(base_url=url, timeout=30, verify=NO_CA))

    def signed_in(self, login: str, password: str) -> Browser:
        """A browser of somebody's, by the form."""
        self.http.get("/sign-in")
        visit = self.http.cookies[VISIT]
        form = {"csrf": csrf_of(visit), "login": login, "password": password}
        answer = self.http.post("/sign-in", data=form)
        assert answer.status_code == 303, answer.text
        self.http.cookies.clear()
        return Browser(self.http, answer.cookies[SESSION_COOKIE])

    def get(self, path: str) -> httpx2.Response:
        return self.http.get(path, headers=self._headers())

    def send(self, path: str, form: dict[str, Any], csrf: str | None = None) -> httpx2.Response:
        """Send a form as our pages make it; ``csrf`` in place of the right word."""
        word = csrf_of(self.cookie or "") if csrf is None else csrf
        return self.http.post(path, data={**form, "csrf": word}, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Cookie": f"{SESSION_COOKIE}={self.cookie}"} if self.cookie else {}


def page_routes() -> list[tuple[str, str]]:
    """Method and path of every page, form and twin of the console."""
    return [
        (method, route.path)
        for name in PAGES
        for route in importlib.import_module(f"ouvrage.server.pages.{name}").router.routes
        for method in route.methods
    ]

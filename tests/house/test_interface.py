"""The server's interface: the file in the repository is what is served, and every address keeps the common rules."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from ouvrage.server.app import routes_app
from ouvrage.server.authorise import ACTIONS, NODE, PUBLIC, SELF
from tests.house.source import ROOT

FILE = ROOT / "docs/reference/openapi.json"
WITHOUT_KEY = {
    ("post", "/v1/services/{job}/{path}"): "what a service makes of a repetition is its own affair",
    ("post", "/v1/login"): "a repeated sign-in is another sign-in",
    ("post", "/v1/logout"): "a token that is revoked stays so",
    ("post", "/v1/runner/enrol"): "its token is good for one time alone",
    ("put", "/v1/jobs/{job}/files/{name}"): "the same file under the same name again is the same",
    ("post", "/v1/facts"): "each fact has an identity of its own, by which it counts once",
}
"""Writes that take no Idempotency-Key, and why none is needed; a node's own reports are numbered instead."""


@cache
def _operations() -> dict[tuple[str, str], Any]:
    document = routes_app().openapi()
    return {
        (method, path): operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_the_interface_in_the_repository_is_the_one_that_is_served() -> None:
    assert json.loads(FILE.read_text("utf-8")) == routes_app().openapi(), "make references"


def test_every_address_names_its_right_and_says_what_it_does() -> None:
    for (method, path), operation in _operations().items():
        assert path.startswith("/v1/")
        action = operation["x-action"]
        assert action in ACTIONS or action in SELF | {PUBLIC, NODE}, (method, path)
        assert operation["description"].endswith((".", "?")), (method, path)


def test_every_refusal_is_declared_in_one_shape() -> None:
    for (method, path), operation in _operations().items():
        for status, answer in operation["responses"].items():
            if status[0] in "45":
                schema = answer["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/ErrorBody"}, (method, path, status)


def test_every_write_can_be_repeated() -> None:
    for (method, path), operation in _operations().items():
        named = [each["name"] for each in operation.get("parameters", [])]
        exempt = (method, path) in WITHOUT_KEY or operation["x-action"] == NODE
        if method != "get" and not exempt:
            assert "Idempotency-Key" in named, (method, path)


def test_lists_come_in_parts() -> None:
    for (method, path), operation in _operations().items():
        schema = str(operation["responses"].get("200", {}).get("content", ""))
        if method == "get" and "/Listed" in schema:
            names = {each["name"] for each in operation["parameters"]}
            assert {"limit", "cursor"} <= names, path

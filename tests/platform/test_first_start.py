"""The first start makes an owner, and only the first one."""

from __future__ import annotations

from tests.support.server import QUICK, Running, running


def test_the_owner_is_known_by_the_token_in_the_state(platform_server: Running) -> None:
    me = platform_server.owner.get("/v1/me")
    assert me["login"] == "admin"
    assert [role["role"] for role in me["roles"]] == ["owner"]
    file = platform_server.platform.state_dir / "owner.token"
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_password_of_the_first_start_signs_in_and_is_never_told_again(tmp_path) -> None:
    with running(tmp_path / "state") as first:
        assert first.password
        assert first.signed_in("admin", first.password).get("/v1/me")["login"] == "admin"
    with running(tmp_path / "state") as second:
        assert second.password is None
        assert second.owner.token == first.owner.token
        assert second.signed_in("admin", first.password).get("/v1/me")["login"] == "admin"
    assert QUICK.password_cost == (8, 1, 1)

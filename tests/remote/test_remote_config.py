"""``remote.toml``: what may stand there, and that no password is ever repeated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ouvrage.adapters.power_quirks import quirk_for, quirks_in, shipped
from ouvrage.adapters.remote_config import pace_of, power_port_of, remote_of, remotes, secret_at
from ouvrage.base.errors import OuvrageError

SECRET = "hunter2hunter2"
REDFISH = 'kind = "redfish"\naddress = "https://10.0.0.21"\n'


def told(home: Path, text: str) -> OuvrageError:
    (home / "remote.toml").write_text(text)
    with pytest.raises(OuvrageError) as refused:
        remotes(home)
    error = refused.value
    assert SECRET not in "\n".join([*error.lines(), str(error.as_json())])
    return error


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'{REDFISH}password = "{SECRET}"', "remote/password"),
        (f'kind = "redfish"\naddress = "https://u:{SECRET}@10.0.0.21"', "remote/address"),
        (f'kind = "ipmi"\naddress = "u:{SECRET}@10.0.0.21"', "remote/address"),
        (
            f'kind = "tasmota"\naddress = "http://10.0.0.9/cm?password={SECRET}"'.replace(
                SECRET, "x"
            ),
            "remote/address",
        ),
        ('kind = "redfish"\naddress = "http://10.0.0.21"', "remote/no-tls"),
        (
            'kind = "redfish"\naddress = "http://127.0.0.1"\npin = "sha256:' + "0" * 64 + '"',
            "remote/pin",
        ),
        (f'{REDFISH}pin = "0000"', "remote/pin"),
        ('kind = "ssh"\naddress = "10.0.0.21"', "remote/kind"),
        ('address = "10.0.0.21"', "remote/kind"),
        (f'{REDFISH}pasword = "file:x"', "remote/key"),
        (f"{REDFISH}cipher = 17", "remote/key"),
        (f"{REDFISH}user = 7", "remote/value"),
        (f"{REDFISH}timeout_s = 0", "remote/value"),
        (f"{REDFISH}outlet = 1", "remote/value"),
        (f'{REDFISH}outlet = "../../Systems/1"', "remote/value"),
        (f'{REDFISH}outlet = ".."', "remote/value"),
        (f'{REDFISH}outlet = "A1"\nsystem = "1"', "remote/key"),
        (f'{REDFISH}pdu = "1"', "remote/key"),
        ('kind = "shelly"\naddress = "http://10.0.0.9"\noutlet = "1"', "remote/value"),
        ('kind = "redfish"\naddress = "https://[::1"', "remote/address"),
        ('kind = "redfish"\naddress = "https://10.0.0.21:99999999"', "remote/address"),
        ('kind = "redfish"\naddress = "https://10.0.0.21:x"', "remote/address"),
        ('kind = "redfish"\naddress = "https://[1:2]"', "remote/address"),
        ('kind = "redfish"\naddress = "https://10.0.0.21\\u001b[2J"', "remote/address"),
        ('kind = "redfish"\naddress = "https://10.0.0.21\\u0000"', "remote/address"),
        (f'{REDFISH}login = "digest"', "remote/login"),
        (f'{REDFISH}restore = "maybe"', "remote/restore"),
        ('kind = "redfish"\naddress = "ftp://x"', "remote/address"),
        ('kind = "ipmi"\naddress = "10.0.0.21 -P x"', "remote/address"),
        ('kind = "ipmi"\naddress = "-L"', "remote/address"),
        ('kind = "ipmi"\naddress = "x:99999"', "remote/address"),
    ],
)
def test_what_may_not_stand_there_is_refused_with_its_place(
    tmp_path: Path, text: str, code: str
) -> None:
    error = told(tmp_path, f"[node.n1]\n{text}\n")
    assert error.code == code
    assert error.where == (f"{tmp_path / 'remote.toml'}: [node.n1]",)
    assert error.hint


@pytest.mark.parametrize(
    "text", ["x = 1", "node = 3", "[node]\nn1 = 3", '[node."../x"]\nkind = "ipmi"', "[node.n1\n"]
)
def test_what_is_no_such_file_is_refused(tmp_path: Path, text: str) -> None:
    told(tmp_path, text)


def test_a_node_that_is_not_named_is_told_with_those_that_are(tmp_path: Path) -> None:
    assert remotes(tmp_path) == {}
    (tmp_path / "remote.toml").write_text(f"[node.n1]\n{REDFISH}")
    with pytest.raises(OuvrageError, match="it names n1") as refused:
        remote_of(tmp_path, "n2")
    assert "[node.gpu1]" in (refused.value.hint or "")


def test_a_password_is_read_where_it_is_referred_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\nnot this\n")
    file.chmod(0o600)
    monkeypatch.setenv("A_SECRET", SECRET)
    for reference in (f"file:{file}", "env:A_SECRET", f"command:head -n 1 {file}"):
        assert secret_at(reference, "here") == SECRET


def test_a_password_that_others_can_read_or_that_is_not_there_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(SECRET)
    file.chmod(0o644)
    empty = tmp_path / "empty"
    empty.touch(0o600)
    wrong = [
        f"file:{file}",
        f"file:{empty}",
        f"file:{tmp_path}/none",
        "env:NOBODY_SET_THIS",
        "command:false",
        "command:",
        "command:/no/such",
    ]
    for reference in wrong:
        with pytest.raises(OuvrageError) as refused:
            secret_at(reference, "here")
        assert refused.value.code == "remote/password"
        assert SECRET not in "\n".join(refused.value.lines())


def test_a_command_is_no_shell(tmp_path: Path) -> None:
    with pytest.raises(OuvrageError):
        secret_at(f"command:false; touch {tmp_path / 'made'}", "here")
    assert not (tmp_path / "made").exists()
    assert secret_at("command:printf %s $HOME", "here") == "$HOME"
    assert os.environ["HOME"] != "$HOME"


def test_nothing_is_asked_when_a_way_is_made(tmp_path: Path) -> None:
    (tmp_path / "remote.toml").write_text(
        f'[node.a]\n{REDFISH}password = "file:/nowhere"\n[node.b]\nkind = "ipmi"\naddress = "local"\n'
        '[node.c]\nkind = "shelly"\naddress = "http://10.0.0.9/"\noff_s = 3\n[node.d]\nkind = "tasmota"\naddress = "http://10.0.0.8"\n'
    )
    made = remotes(tmp_path)
    assert [power_port_of(each).kind for each in made.values()] == [
        "redfish",
        "ipmi",
        "shelly",
        "tasmota",
    ]
    assert [pace_of(each).look_s for each in made.values()] == [2, 5, 0.5, 0.5]
    assert (pace_of(made["c"]).off_s, made["c"].address) == (3, "http://10.0.0.9")


def test_every_quirk_says_why_and_where_from() -> None:
    assert all(len(row["why"]) > 20 or row["source"] == "our choice" for row in shipped())
    assert all(row["source"] for row in shipped())
    dell = quirk_for("redfish", "Dell Inc.", "PowerEdge XE9680")
    assert (dell.names, dell.busy_words) == (("redfish", "idrac-not-ready"), ("SYS518",))
    assert quirk_for("redfish", "HPE", "").busy_words == ("InvalidOperationForSystemState",)
    assert quirk_for("ipmi", "Dell Inc.", "").busy_words == ()


def test_a_quirk_that_is_none_is_refused() -> None:
    with pytest.raises(OuvrageError, match="loook_s"):
        quirks_in(
            "x.toml",
            '[[quirk]]\nname = "x"\nkind = "ipmi"\nmaker = "*"\nmodel = "*"\nwhy = ""\nsource = ""\nloook_s = 3\n',
        )
    rows = quirks_in(
        "x.toml",
        '[[quirk]]\nname = "x"\nkind = "ipmi"\nmaker = "acme*"\nmodel = "*"\nwhy = "it lies"\nsource = "a ticket"\nignore = ["fan?"]\noff_s = 30\n',
    )
    quirk = quirk_for("ipmi", "Acme Corp", "", rows)
    assert quirk.ignores("FAN1")
    assert not quirk.ignores("FAN12")
    assert quirk.off_s == 30


@pytest.mark.parametrize(
    "text",
    [
        "node = 3",
        "[node]\ngpu1 = 3",
        "[nodes.gpu1]",
        "[node.gpu1]\nkind = 3",
        "\x00",
        "[node.gpu1",
        "\ufeff",
    ],
)
def test_a_file_in_no_form_is_refused_with_what_is_wrong(tmp_path: Path, text: str) -> None:
    (tmp_path / "remote.toml").write_text(text, encoding="utf-8")
    if text == "\ufeff":
        assert remotes(tmp_path) == {}  # a mark that Windows leaves in front is none of ours
        return
    with pytest.raises(OuvrageError) as refused:
        remotes(tmp_path)
    words = "\n".join(refused.value.lines())
    assert "remote.toml" in words
    assert "no place for \n" not in words


def test_a_folder_in_the_file_s_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "remote.toml").mkdir()
    with pytest.raises(OuvrageError):
        remotes(tmp_path)

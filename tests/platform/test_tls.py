"""An authority of one's own: what it vouches for, how long, and that a client believes it and nobody else."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx2
import pytest
from cryptography import x509

from ouvrage.base.errors import OuvrageError
from ouvrage.base.time import DAY, SECOND
from ouvrage.server.listening import Listen, Start
from ouvrage.server.starting import bound, settings_of, with_certificate
from ouvrage.server.tls import CA, check_pair, own_certificate
from tests.support.server import running

NOW = 1_796_000_000 * SECOND


def _read(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_a_certificate_is_kept_until_it_is_nearly_over_or_for_another_name(tmp_path: Path) -> None:
    certificate, key = own_certificate(tmp_path, "127.0.0.1", NOW)
    check_pair(certificate, key)
    authority = tmp_path / "tls" / CA
    _read(certificate).verify_directly_issued_by(_read(authority))
    first, ca = certificate.read_bytes(), authority.read_bytes()
    own_certificate(tmp_path, "127.0.0.1", NOW + 59 * DAY)
    assert certificate.read_bytes() == first
    own_certificate(tmp_path, "127.0.0.1", NOW + 61 * DAY)
    renewed = certificate.read_bytes()
    assert renewed != first
    own_certificate(tmp_path, "192.0.2.7", NOW + 61 * DAY)
    assert certificate.read_bytes() != renewed
    assert authority.read_bytes() == ca
    names = _read(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert {"127.0.0.1", "192.0.2.7", "::1"} == {
        str(a) for a in names.get_values_for_type(x509.IPAddress)
    }
    assert "localhost" in names.get_values_for_type(x509.DNSName)


def test_the_authority_vouches_for_no_other_authority(tmp_path: Path) -> None:
    certificate, _ = own_certificate(tmp_path, "127.0.0.1", NOW)
    limits = [
        _read(file).extensions.get_extension_for_class(x509.BasicConstraints).value
        for file in (tmp_path / "tls" / CA, certificate)
    ]
    assert [(each.ca, each.path_length) for each in limits] == [(True, 0), (False, None)]


def test_only_who_trusts_the_authority_believes_the_server(tmp_path: Path) -> None:
    start = Start(state=tmp_path / "state", tls="own")
    listen = with_certificate(start, Listen(host="127.0.0.1", port=0))
    settings = settings_of(start, listen)
    assert settings.secure
    with running(start.state, settings=settings, listen=listen) as server:
        assert server.url.startswith("https://127.0.0.1:")
        headers = server.owner("GET", "/v1/health").headers
        assert headers["strict-transport-security"] == "max-age=31536000"
        with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx2.get(f"{server.url}/v1/health", verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))


def test_a_certificate_and_a_key_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    certificate, key = own_certificate(tmp_path, "127.0.0.1", NOW)
    for pair in ((certificate, tmp_path / "tls" / "ca.key"), (key, key), (tmp_path / "no", key)):
        with pytest.raises(OuvrageError) as refused:
            check_pair(*pair)
        assert refused.value.code == "tls/pair"
    (tmp_path / "tls" / "server.pem").write_text("spoilt")
    with pytest.raises(OuvrageError) as refused:
        own_certificate(tmp_path, "127.0.0.1", NOW)
    assert refused.value.code == "tls/certificate"


def test_a_socket_speaks_at_once(tmp_path: Path) -> None:
    """Without the protocol named in it asyncio leaves Nagle's delay on, and each small answer waits 40 ms."""
    import socket

    with bound(Listen(host="127.0.0.1", port=0)) as sock:
        assert sock.proto == socket.IPPROTO_TCP

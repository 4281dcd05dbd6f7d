"""How a certificate is said: passed or not first, then what failed, what the books need, and how long it counts.

Decides words, order and the bar that is drawn while a machine is under load. Whether a certificate counts is not decided here.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

from ouvrage.adapters.clock import monotonic_us
from ouvrage.base.numbers import significant
from ouvrage.base.text import safe
from ouvrage.base.time import DAY, HOUR, MINUTE, SECOND, utc_text
from ouvrage.cli.output import shortened, table
from ouvrage.health.certificates import Standing
from ouvrage.health.needs import NeedTable
from ouvrage.model.health import CertifiedFigure, NodeCertificate, Proof

_WIDTH = 90
_BAR = 24
_FIGURES = {
    "wall": "power at the wall", "energy": "energy under load", "heat": "heat", "price_floor": "price floor",
    "psu_headroom": "power supplies", "circuit_headroom": "circuit", "service_level": "can promise",
}  # fmt: skip


class Bar:
    """One line on a terminal that is gone at the end: how far the load is, and when it will be over."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._began: int | None = None

    def words(self, text: str) -> None:
        """What is being done now."""
        self._say(f"measuring: {text} …")

    def share(self, share: Fraction, text: str) -> None:
        """How much of the load is over, and words about the machine."""
        now = monotonic_us()
        self._began = now if self._began is None else self._began
        full = round(_BAR * share)
        left = (now - self._began) * (1 - share) / share if share else None
        ends = "" if left is None else f", {lasting(round(left))} left"
        about = f"   {text}" if text else ""
        self._say(
            f"under load [{'#' * full}{'.' * (_BAR - full)}] {float(100 * share):.0f} %{ends}{about}"
        )

    def clear(self) -> None:
        """Take the line away."""
        self._say("")

    def _say(self, text: str) -> None:
        if self._shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def progress(as_json: bool) -> Bar:
    """A bar on a terminal; nothing elsewhere."""
    return Bar(shown=not as_json and sys.stderr.isatty())


def lasting(us: int) -> str:
    """A time in its two greatest units."""
    if us < 2 * MINUTE:
        return f"{us / SECOND:.0f} s"
    if us < 2 * HOUR:
        return f"{us / MINUTE:.0f} min"
    return f"{us / HOUR:.0f} h" if us < 3 * DAY else f"{us / DAY:.0f} days"


def certificate_json(certificate: NodeCertificate) -> dict[str, Any]:
    """The certificate as one value."""
    return {
        "certificate": certificate.certificate,
        "node": certificate.node,
        "class": certificate.work_class,
        "passed": certificate.passed,
        "tested_us": certificate.tested_us,
        "expires": utc_text(certificate.expires_us),
        "table": certificate.table,
        "proofs": [_plain(each) for each in certificate.proofs],
        "figures": {each.name: _plain(each) for each in certificate.figures},
        "parts": list(certificate.parts),
    }


def _plain(value: Proof | CertifiedFigure) -> dict[str, Any]:
    return {name: getattr(value, name) for name in type(value).__slots__}


def certificate_words(certificate: NodeCertificate, needs: NeedTable, *, plain: bool) -> str:
    """Lines for a person."""
    grade = "(measured)" if plain else "●"
    failed = [p for p in certificate.proofs if p.passed is False]
    left = [p for p in certificate.proofs if p.passed is None and p.needed]
    lines = [f"{_answer(certificate, failed, left)} {grade}", ""]
    rows = [_row(each, needs) for each in certificate.proofs]
    lines += [safe(f"  {line}") for line in table(("", "check", "found", "needed", "how"), rows, "<<>><").split("\n")]  # fmt: skip
    for proof in (*failed, *left):
        lines += [f"  {proof.code}: {proof.remediation}"]
    lines += ["", *(_figure(each) for each in certificate.figures), ""]
    lines += [_counts(certificate), "Whether it still counts: ouvrage node certificates"]
    return "\n".join(lines)


def _answer(certificate: NodeCertificate, failed: list[Proof], left: list[Proof]) -> str:
    who = f"{certificate.node} for {certificate.work_class}"
    proved = sum(1 for p in certificate.proofs if p.passed)
    if certificate.passed:
        return f"Passed: {who}, {proved} proofs, {lasting(certificate.tested_us)} under load"
    codes = ", ".join(p.code for p in failed)
    untried = f"{len(left)} needed and not proved ({', '.join(p.code for p in left)})"
    told = "; ".join(words for words, there in ((codes, failed), (untried, left)) if there)
    return f"Not passed: {who}: {told}"


def _row(proof: Proof, needs: NeedTable) -> tuple[str, str, str, str, str]:
    mark = {True: "ok", False: "FAIL", None: "OPEN" if proof.needed else "left out"}[proof.passed]
    test = needs.tests.get(proof.id)
    found = "–" if proof.actual is None else f"{_short(proof.actual)} {proof.unit}".rstrip()
    sign = {">=": "≥", "<=": "≤"}[proof.operator]
    how = shortened(proof.how, _WIDTH)
    return mark, test.words if test else proof.id, found, f"{sign} {_short(proof.required)}", how


def _short(text: str) -> str:
    value = Fraction(text)
    return text if value.denominator == 1 or len(text) <= 5 else significant(value, 4)


def _figure(figure: CertifiedFigure) -> str:
    name = _FIGURES.get(figure.name, figure.name)
    if figure.value is None:
        return safe(f"  {name:<18} not known: {figure.how}")
    return safe(f"  {name:<18} {_short(figure.value)} {figure.unit} ({figure.grade}: {figure.how})")


def _counts(certificate: NodeCertificate) -> str:
    until = utc_text(certificate.expires_us)[:16].replace("T", " ")
    if not certificate.passed:
        return "On record as not passed; run it again when it is mended."
    return f"Counts until {until} UTC, with these {len(certificate.parts)} parts: a changed one voids it."


def standing_json(found: Standing) -> dict[str, Any]:
    """A certificate and whether it counts."""
    return {
        "state": found.state,
        "reasons": list(found.reasons),
        **certificate_json(found.certificate),
    }


def standing_words(found: Standing) -> str:
    """One line, with reasons where it does not count."""
    held = found.certificate
    until = utc_text(held.expires_us)[:16].replace("T", " ")
    when = f"until {until} UTC" if found.holds else found.reasons[0] if found.reasons else ""
    return safe(f"  {held.node} for {held.work_class}: {found.state}, {when}")

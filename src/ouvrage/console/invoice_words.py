"""The words of an invoice in each language, and its numbers, dates and reasons as that language writes them.

Decides the vocabulary: one table, a column a language, so that a missing word is seen at once and a test can compare them. Babel
writes numbers and dates. Reasons come from the rating engine in English; the forms they take are few and each has its French here,
and what has none is shown as it is, since a wrong translation of a rule would be worse than a foreign one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

from ouvrage.base.errors import OuvrageError
from ouvrage.base.numbers import NANO, decimal_in, fixed
from ouvrage.books.dues.invoice import cents

LANGUAGES = ("en", "fr")
WORDS: dict[str, tuple[str, str]] = {
    "invoice": ("Invoice", "Facture"),
    "draft": ("Draft invoice", "Projet de facture"),
    "credit_note": ("Credit note", "Avoir"),
    "headline": ("{what} {number}: {amount} for {period}", "{what} {number} : {amount} pour {period}"),
    "headline_draft": ("{what}: {amount} for {period}", "{what} : {amount} pour {period}"),
    "untaxed": ("{amount} before tax", "{amount} hors taxe"),
    "from": ("From", "Émetteur"),
    "to": ("To", "Client"),
    "number": ("Number", "Numéro"),
    "issued": ("Issued", "Date d’émission"),
    "period": ("Period", "Période"),
    "corrects": ("Corrects invoice", "Annule la facture"),
    "not_issued": ("not issued", "non émise"),
    "work": ("What the money bought", "Ce que l’argent a payé"),
    "project": ("project", "projet"),
    "job": ("job or lease", "tâche ou location"),
    "time": ("time paid", "temps payé"),
    "held": ("time held", "temps occupé"),
    "amount": ("amount", "montant"),
    "finished": ("finished", "terminé"),
    "per_unit": ("cost per unit", "coût par unité"),
    "not_counted": ("not counted", "non compté"),
    "lines": ("Charges, each with the rule that made it", "Détail, avec la règle appliquée"),
    "when": ("when (UTC)", "quand (UTC)"),
    "rule": ("rule", "règle"),
    "quantity": ("quantity", "quantité"),
    "price": ("price", "prix"),
    "projects": ("By project", "Par projet"),
    "unbilled": ("Held and not charged", "Occupé et non facturé"),
    "why": ("why", "motif"),
    "charges": ("Charges", "Total du détail"),
    "rounding": ("Rounding to {step} {currency}", "Arrondi à {step} {currency}"),
    "net": ("Net", "Total hors taxe"),
    "tax": ("Tax, {rate} %", "Taxe, {rate} %"),
    "tax_unknown": ("Tax", "Taxe"),
    "not_stated": ("not stated", "non indiquée"),
    "total": ("Total", "Total, taxe comprise"),
    "prepaid": ("Paid before", "Déjà payé"),
    "owed_before": ("Still owed from earlier invoices", "Reste dû de factures antérieures"),
    "due": ("To pay for this invoice", "À payer pour cette facture"),
    "note_draft": (
        "This is a draft: nothing is owed by it. Charges may be added until it is issued.",
        "Ceci est un projet : il n’engage à rien. Des frais peuvent s’y ajouter jusqu’à l’émission.",
    ),
    "below": ("{amount}, less than {least}", "{amount}, moins de {least}"),
    "note_below": (
        "Less than can be paid: no invoice is issued for it. The charges stay open and go onto the next one.",
        "Moins que ce qui peut être payé : aucune facture n’est émise. Les frais restent ouverts et passent à la suivante.",
    ),
    "note_running": (
        "Still running and not charged yet: {amount}, by the same rules.",
        "En cours et pas encore facturé : {amount}, selon les mêmes règles.",
    ),
    "note_simulated": (
        "Simulated charges: this can never be invoiced.",
        "Frais simulés : ceci ne pourra jamais être facturé.",
    ),
    "note_grade": (
        "Times are measured by the machine itself, and charged by the plan that was frozen into each lease. Every line is exact; "
        "only the total is rounded, and the difference is a line.",
        "Les durées sont mesurées par la machine elle-même et facturées selon le tarif figé dans chaque location. Chaque ligne est "
        "exacte ; seul le total est arrondi, et la différence est une ligne.",
    ),
    "page": ("Page {page}", "Page {page}"),
    "term_lease": ("lease of {offer}", "location de {offer}"),
    "credit": ("credit", "crédit"),
}  # fmt: skip

_NUMBER = r"([0-9.]+)"
_REASONS: tuple[tuple[str, str], ...] = (
    (
        rf"{_NUMBER} s rounded up by {_NUMBER} s: {_NUMBER} s",
        r"\1 s arrondies par \2 s en plus : \3 s",
    ),
    (
        rf"{_NUMBER} s rounded down by {_NUMBER} s: {_NUMBER} s",
        r"\1 s arrondies par \2 s en moins : \3 s",
    ),
    (
        rf"{_NUMBER} s rounded to the nearest by {_NUMBER} s: {_NUMBER} s",
        r"\1 s arrondies à \2 s près : \3 s",
    ),
    (rf"at least {_NUMBER} s", r"au moins \1 s"),
    (rf"{_NUMBER} s in all", r"\1 s en tout"),
    (rf"billed {_NUMBER} s", r"facturées \1 s"),
    (rf"{_NUMBER} s of them", r"dont \1 s"),
    (rf"{_NUMBER} s", r"\1 s"),
    (
        rf"commenced {_NUMBER} s of the clock in (\S+): {_NUMBER} s",
        r"tranches entamées de \1 s à l’horloge (\2) : \3 s",
    ),
    (
        rf"whole {_NUMBER} s of the clock in (\S+): {_NUMBER} s",
        r"tranches entières de \1 s à l’horloge (\2) : \3 s",
    ),
    (
        rf"commenced (day|month) of the clock in (\S+): {_NUMBER} s",
        r"\1 entamé à l’horloge (\2) : \3 s",
    ),
    (
        rf"whole (day|month) of the clock in (\S+): {_NUMBER} s",
        r"\1 entier à l’horloge (\2) : \3 s",
    ),
    (
        r"its (.+) of the clock in (\S+) is billed above",
        r"sa tranche de \1 à l’horloge (\2) est facturée ci-dessus",
    ),
    (rf"less {_NUMBER} (\S+) charged before", r"moins \1 \2 déjà facturées"),
    (rf"egress {_NUMBER} (\S+)", r"envoyés : \1 \2"),
    (rf"ingress {_NUMBER} (\S+)", r"reçus : \1 \2"),
    (r"(\S+) is included in (.+)", r"\1 est compris dans \2"),
    (rf"at {_NUMBER} (\S+)", r"à \1 \2"),
    (rf"× {_NUMBER} in this state", r"× \1 dans cet état"),
    (r"within the free allowance", r"dans la franchise"),
    (rf"tier {_NUMBER} of {_NUMBER}", r"tranche \1 sur \2"),
    (rf"a month of {_NUMBER} h", r"un mois de \1 h"),
    (r"given back: (.+)", r"remboursé : \1"),
    (rf"(?:the charge for (.+)|the total) rounded (\S+) to {_NUMBER}", r"\1 arrondi à \3 (\2)"),
)
_WHY = {
    "hardware": "panne matérielle", "lost": "perdu", "never started": "jamais démarré", "done": "terminé",
    "not charged": "non facturé", "charged too much before": "trop facturé auparavant",
}  # fmt: skip
_DAYS = {"day": "jour", "month": "mois"}


def _babel() -> tuple[Any, Any]:
    try:
        from babel import dates, numbers
    except ModuleNotFoundError as error:
        raise OuvrageError(
            "invoice/no-babel", "the library that writes numbers and dates of a language is not installed",
            hint="pip install 'ouvrage[server]', or ask for --json",
        ) from error  # fmt: skip
    return numbers, dates


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Words, numbers and dates of one language: ``en`` or ``fr``."""

    code: str

    def say(self, key: str, **values: str) -> str:
        """The word of a key, with what stands in its places."""
        return WORDS[key][LANGUAGES.index(self.code)].format(**values)

    def _decimal(self, text: str, pattern: str) -> str:
        numbers, _ = _babel()
        written: str = numbers.format_decimal(decimal_in(text), format=pattern, locale=self.code)
        return written.replace("\u202f", "\u00a0")  # a space that more fonts have

    def number(self, value: Fraction, places: int) -> str:
        """A number with at most so many decimal places."""
        return self._decimal(fixed(value, places), f"#,##0.{'#' * places}")

    def paid(self, nano: int, currency: str) -> str:
        """An amount as it is paid, in whole cents: ``1,234.50 EUR``."""
        places = cents(currency)
        return (
            self._decimal(fixed(Fraction(nano, NANO), places), "#,##0." + "0" * places)
            + f"\u00a0{currency}"
        )

    def exact(self, nano: int | Fraction) -> str:
        """An amount to the nano-unit, without its currency; two decimal places at least."""
        return self._decimal(fixed(Fraction(nano) / NANO, 9), "#,##0.00#######")

    def day(self, at_us: int) -> str:
        """A day in full."""
        _, dates = _babel()
        return dates.format_date(_utc(at_us).date(), format="long", locale=self.code)

    def moment(self, at_us: int) -> str:
        """A day and a time, short."""
        _, dates = _babel()
        written: str = dates.format_datetime(_utc(at_us), "d MMM HH:mm:ss", locale=self.code)
        return written.replace("\u202f", "\u00a0")

    def month(self, name: str) -> str:
        """A month's name for ``2026-11``; another period's name as it is."""
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}", name):
            return name.replace("..", " – ")
        _, dates = _babel()
        first = date.fromisoformat(f"{name}-01")
        return dates.format_date(first, format="MMMM y", locale=self.code)

    def price(self, words: str) -> str:
        """A price as a plan writes it, ``0.30 EUR/h``, with this language's point."""
        return words if self.code == "en" else words.replace(".", ",")

    def reason(self, words: str) -> str:
        """Why an amount is what it is, in this language as far as its form is known."""
        if self.code == "en":
            return words
        parts = re.split("(; |, )", words)
        return "".join(" ; " if part == "; " else _french(part) for part in parts)

    def cause(self, words: str) -> str:
        """An outcome in a word or two."""
        return _WHY.get(words, words) if self.code == "fr" else words


def _utc(at_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=at_us)


def _french(part: str) -> str:
    for pattern, instead in _REASONS:
        found = re.fullmatch(pattern, part)
        if found:
            return _expanded(found, instead)
    return part


def _expanded(found: re.Match[str], instead: str) -> str:
    groups = [
        _DAYS.get(each or "", _WHY.get(each or "", each or "le total")) for each in found.groups()
    ]
    place: Callable[[re.Match[str]], str] = lambda m: groups[int(m[1]) - 1]  # noqa: E731 typed, so that re.sub knows it
    return re.sub(r"\\([0-9])", place, instead).replace(".", ",")


def language(code: str) -> Language:
    """The language of a code. Raises ``OuvrageError`` ``invoice/language``."""
    if code not in LANGUAGES:
        raise OuvrageError(
            "invoice/language",
            f"invoices are not written in {code!r}",
            hint=f"one of {', '.join(LANGUAGES)}",
        )
    return Language(code=code)

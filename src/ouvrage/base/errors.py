"""The one exception a user can cause.

Decides how a mistake is told: a stable code, plain words, where it was found, and what to do about
it. A broken invariant is not this: it raises ``AssertionError`` or ``RuntimeError`` and stops the
program, because nobody at the keyboard can mend it.
"""

from __future__ import annotations

from typing import Any

NOTHING_WRITTEN = "nothing was written"
"""The last line of a refusal, where that is true: whoever prints it knows."""


class OuvrageError(Exception):
    """A refusal: ``code`` is stable, ``message`` says what was found, ``hint`` what to do.

    ``where`` holds lines such as ``plans/ec2.toml:41   valid_until = ...``; ``exit_code`` is what a
    command ends with (2 for usage and input, as settled in the design).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        where: tuple[str, ...] = (),
        exit_code: int = 2,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.where = where
        self.exit_code = exit_code

    def lines(self) -> list[str]:
        """The refusal as a person reads it on a terminal."""
        text = [f"error[{self.code}]: {self.message}", *(f"  {line}" for line in self.where)]
        if self.hint:
            first, *more = self.hint.split("\n")  # an example of a file stands on lines of its own
            text += [f"  hint: {first}", *(f"    {line}" for line in more)]
        return text

    def as_json(self) -> dict[str, Any]:
        """The refusal as ``--json`` prints it."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "where": list(self.where),
                "hint": self.hint,
            }
        }

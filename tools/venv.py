"""Build or refresh ``.venv`` from one of the pinned sets in ``requirements/``.

Runs on the bare interpreter, before anything is installed, so it uses the standard library only. It
decides whether the environment at hand is the wanted one (a stamp inside it names the hash of all
that went into it), and builds it anew when it is not: an environment that was patched up over months
is one that nobody else has. Installing is pip's work, or uv's where that is on the path; both read
the same pins and hashes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PINS = ROOT / "requirements"
LEAST = (3, 11)
HOLDS_ALSO = {"dev": ("run",), "run": ()}  # dev.txt is a superset of run.txt


def main() -> int:
    """Bring ``.venv`` to the named set; 0 when it stands, 1 with the reason when it does not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("set", choices=sorted(HOLDS_ALSO))
    wanted = parser.parse_args().set
    if sys.version_info < LEAST:
        return _refuse(
            f"Python {_dotted(sys.version_info[:2])} is too old: the pins need {_dotted(LEAST)}",
            "make PYTHON=python3.11 ...",
        )
    if not _stands(wanted):
        if not _can_grow_to(wanted) and not _create():
            return 1
        if not _install(wanted):
            return 1
        _stamp(wanted).touch()
    return 0 if _product_installed() else 1


def _stands(wanted: str) -> bool:
    bigger = [name for name, parts in HOLDS_ALSO.items() if wanted in parts]
    return any(_stamp(name).exists() for name in (wanted, *bigger))


def _can_grow_to(wanted: str) -> bool:
    """Only a smaller set, as pinned today and nothing else, may be added to."""
    present = set(VENV.glob(".holds-*"))
    return bool(present) and present <= {_stamp(name) for name in HOLDS_ALSO[wanted]}


def _stamp(name: str) -> Path:
    return VENV / f".holds-{name}-{_digest((PINS / f'{name}.txt').read_bytes())}"


def _digest(content: bytes) -> str:
    """A hash of the content together with the interpreter and the place, which scripts record."""
    whole = hashlib.sha256(content)
    whole.update(f"{sys.version}\0{VENV}".encode())
    return whole.hexdigest()[:16]


def _create() -> bool:
    if VENV.exists():
        print("the pins or the place changed: building .venv anew", flush=True)
        shutil.rmtree(VENV)
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)], capture_output=True, text=True, check=False
    )
    if made.returncode == 0:
        return True
    shutil.rmtree(VENV, ignore_errors=True)
    _refuse(
        "the virtual environment could not be built", "apt-get install python3-venv", made.stdout
    )
    return False


def _install(wanted: str) -> bool:
    pins = PINS / f"{wanted}.txt"
    count = len(re.findall(r"^[A-Za-z0-9]", pins.read_text("utf-8"), re.MULTILINE))
    name, command = _installer()
    print(
        f"installing the {count} packages of requirements/{pins.name} with {name} ...", flush=True
    )
    began = time.monotonic()
    if not _run([*command, "--quiet", "--require-hashes", "-r", str(pins)]):
        return False
    print(f"installed in {time.monotonic() - began:.0f} s", flush=True)
    return True


def _product_installed() -> bool:
    stamp = VENV / f".product-{_digest((ROOT / 'pyproject.toml').read_bytes())}"
    if stamp.exists():
        return True
    command = [*_installer()[1], "--quiet", "--no-deps", "--no-build-isolation", "-e", str(ROOT)]
    if not _run(command):
        return False
    for old in VENV.glob(".product-*"):
        old.unlink()
    stamp.touch()
    return True


def _installer() -> tuple[str, list[str]]:
    python = str(VENV / "bin" / "python")
    uv = shutil.which("uv")
    if uv:
        return "uv", [uv, "pip", "install", "--python", python, "--compile-bytecode"]
    return "pip", [python, "-m", "pip", "install", "--disable-pip-version-check"]


def _run(command: list[str]) -> bool:
    """Run quietly; on failure say everything that was said, and whose words they are."""
    bare = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=bare)
    if done.returncode:
        _refuse(
            f"failed: {' '.join(command)}", "its own words are above", done.stdout + done.stderr
        )
    return done.returncode == 0


def _refuse(found: str, hint: str, words: str = "") -> int:
    print(words, end="", file=sys.stderr)
    print(f"error[venv]: {found}\n  hint: {hint}", file=sys.stderr)
    return 1


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


if __name__ == "__main__":
    sys.exit(main())

"""What the house rules look at: the tracked files, and the Python among them as syntax trees.

Reads git's own list where there is one, so that a file left lying about does not fail a rule, and
falls back to walking the tree where the repository came as an archive.
"""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "ouvrage"
SKIPPED = {".git", ".venv", ".tools", "out", "dist", "build", "_build", "__pycache__"}
PURE = ("base", "model", "ledger", "evidence", "metering", "pricing", "placement", "fleet", "books")


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One Python file: its path from the root, its text and its tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A function and the number of lines it takes, decorators and docstring excluded."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef
    lines: int

    @property
    def where(self) -> str:
        return f"{self.module.name}:{self.node.lineno} {self.node.name}"


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that belongs to the repository, new ones that git does not ignore included."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [p for p in ROOT.rglob("*") if not SKIPPED & set(p.relative_to(ROOT).parts)]
    return tuple(sorted(p for p in paths if p.is_file()))


@cache
def modules(*folders: str) -> tuple[Module, ...]:
    """The Python files under these folders of the repository (all when none is named)."""
    roots = [ROOT / folder for folder in folders] or [ROOT]
    return tuple(
        Module(path=path, text=text, tree=ast.parse(text))
        for path in tracked()
        if path.suffix == ".py" and any(path.is_relative_to(root) for root in roots)
        for text in [path.read_text("utf-8")]
    )


def functions(*folders: str) -> list[Function]:
    """Every function, nested ones and methods included."""
    return [
        Function(module=module, node=node, lines=_body_lines(node))
        for module in modules(*folders)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From ``def`` to the last line; the docstring does not count, since prose is no complexity."""
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total

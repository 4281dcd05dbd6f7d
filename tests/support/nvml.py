"""The stand-in for NVIDIA's library, built with the machine's own compiler, and its state."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "native" / "nvml_stub.c"


def compiler() -> str | None:
    """A C compiler, None where there is none."""
    return shutil.which("cc") or shutil.which("gcc")


def build(directory: Path) -> Path:
    """Build the library; the directory that holds it."""
    words = [compiler() or "cc", "-O2", "-fvisibility=hidden", "-shared", "-fPIC"]
    target = directory / "libnvidia-ml.so.1"
    words += ["-Wl,-soname,libnvidia-ml.so.1", "-o", str(target), str(SOURCE), "-lpthread"]
    subprocess.run(words, check=True, capture_output=True)
    return directory


class Cards:
    """The GPUs of the stand-in, as its state file says; each ``set`` replaces that file whole."""

    def __init__(self, library: Path, state: Path) -> None:
        self.library = library
        self.state = state
        self._held: dict[str, object] = {"count": 1}
        self.set()

    def set(self, **changes: object) -> None:
        """Change settings: ``count=2``, ``gpu0__energy_mj=5`` for ``gpu0.energy_mj``."""
        self._held |= {name.replace("__", "."): value for name, value in changes.items()}
        draft = self.state.with_name(f".{self.state.name}")
        draft.write_text("".join(f"{name}={value}\n" for name, value in self._held.items()))
        os.replace(draft, self.state)

    def held(self, name: str) -> object:
        """What a setting says now."""
        return self._held[name]

    def limit_w(self, gpu: int = 0) -> int | None:
        """The power limit that was last set on a card, whoever set it; None: never."""
        try:
            return int(self.state.with_name(f"{self.state.name}.limit.{gpu}").read_text()) // 1000
        except FileNotFoundError:
            return None

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find the stand-in."""
        return {"LD_LIBRARY_PATH": str(self.library), "OUVRAGE_NVML_STATE": str(self.state)}

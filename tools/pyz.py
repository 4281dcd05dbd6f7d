"""Build ``dist/ouvrage.pyz``: the meter as one file for any Linux with Python 3.10 or newer.

Only what stands on the standard library goes in, and NVIDIA's binding for GPUs, which is one module
without other needs; it is taken from the Python that builds. The file is the same, byte for byte,
whenever it is built from the same sources.

    python tools/pyz.py [FILE]
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import zipfile
from pathlib import Path

PARTS = (
    "__init__.py", "__main__.py", "client.py", "base", "model", "ledger", "evidence", "metering",
    "pricing", "adapters", "meter", "integrations",
)  # fmt: skip
START = b"#!/usr/bin/env python3\n"
MAIN = b"import sys\n\nfrom ouvrage.__main__ import main\n\nsys.exit(main())\n"
THE_PAST = (1980, 1, 1, 0, 0, 0)


def sources(package: Path) -> list[Path]:
    """Every module of the meter and of what it stands on, in order."""
    found: list[Path] = []
    for part in PARTS:
        path = package / part
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def binding() -> bytes:
    """NVIDIA's binding, a single module; its licence stands at its top."""
    held = importlib.metadata.distribution("nvidia-ml-py")
    (module,) = (file for file in held.files or () if file.name == "pynvml.py")
    return module.read_binary()


def build(package: Path, target: Path) -> None:
    """Write the file whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.new")
    with draft.open("wb") as file:
        file.write(START)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "__main__.py", MAIN)
            for path in sources(package):
                _add(archive, path.relative_to(package.parent).as_posix(), path.read_bytes())
            _add(archive, "pynvml.py", binding())
    draft.chmod(0o755)
    draft.replace(target)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, THE_PAST)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def main() -> int:
    """Build it where the first argument says."""
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=root / "dist" / "ouvrage.pyz")
    target = parser.parse_args().file
    build(root / "src" / "ouvrage", target)
    sys.stdout.write(f"{target}: {target.stat().st_size} bytes\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Files that go along with a submitted job, and those that come back.

Decides that the value of an input may be a path here, whose last part is then the name it is sent by; that every file is looked for before
anything is submitted; and that what comes back never leaves the directory it is meant for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ouvrage.adapters.server_client import Talk
from ouvrage.base.errors import OuvrageError
from ouvrage.cli.output import wrote


def local_inputs(data: dict[str, Any], base: Path) -> dict[str, Path]:
    """By the name each is sent by, the file here. Changes ``data`` so that it names them so.

    Raises ``OuvrageError`` ``job/input`` for one that isn't here, or two that would go by one name.
    """
    pairs = list(_pairs(data.get("inputs")))
    found: dict[str, Path] = {}
    inputs: dict[str, str] = {}
    for target, source in pairs:
        path = base / source
        if not path.is_file():
            raise OuvrageError(
                "job/input", f"{path} is no file", hint="--input PATH-IN-SANDBOX=FILE"
            )
        if found.setdefault(path.name, path) != path:
            raise OuvrageError(
                "job/input",
                f"{found[path.name]} and {path} would go by one name",
                hint="give them different names",
            )
        inputs[target] = path.name
    if pairs:
        data["inputs"] = inputs
    return found


def _pairs(given: Any) -> Iterator[tuple[str, str]]:
    if isinstance(given, Mapping):
        yield from ((str(target), str(source)) for target, source in given.items())
        return
    for item in [given] if isinstance(given, str) else given or ():
        target, equals, source = str(item).partition("=")
        yield (target, source) if equals else (Path(target).name, target)


def send_inputs(server: Talk, job: str, inputs: Mapping[str, Path]) -> None:
    """Send the files; the job starts once all are there."""
    for name, path in inputs.items():
        server.send_file(f"/v1/jobs/{job}/files/{name}", path)


def fetch_outputs(server: Talk, job: str, target: Path) -> list[Path]:
    """Bring every file that a job left into a directory."""
    found: list[Path] = []
    for each in server.get(f"/v1/jobs/{job}/files"):
        if each["direction"] != "out":
            continue
        path = target / Path(each["name"]).name
        target.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.part")
        with (
            server.stream(f"/v1/jobs/{job}/files/{each['name']}") as stream,
            draft.open("wb") as file,
        ):
            for piece in stream.pieces:
                file.write(piece)
        draft.replace(path)
        wrote()
        found.append(path)
    return found

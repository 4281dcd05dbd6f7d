"""What may be imported where, beyond the layers that import-linter holds.

The pure layers and everything that runs inside or beside a user's command import the standard
library only; the pure layers leave out even the parts of it that touch the world.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import pytest

from tests.house.source import PURE, ROOT, SRC, Module, modules

ELSEWHERE = {
    "src/ouvrage/adapters/nvml.py": {"pynvml"},  # one module, in a process of its own
    "src/ouvrage/adapters/server_client.py": {"httpx2", "stamina"},  # the meter never loads it
    "src/ouvrage/adapters/redfish.py": {"sushy"},  # an extra of its own; only `node power` loads it
    "src/ouvrage/adapters/redfish_link.py": {"sushy", "requests", "urllib3"},  # nor this
    "src/ouvrage/adapters/stream_client.py": {"websockets"},  # nor this
    "src/ouvrage/adapters/yaml_text.py": {
        "yaml"
    },  # read by the command line and the server, never by the meter
}
STANDARD = set(sys.stdlib_module_names) - {"tomllib"}  # the meter runs on Python 3.10 too
NEWER = {"src/ouvrage/adapters/toml_text.py": {"tomllib"}}  # imported where Python has it
LIGHT = ("meter", "adapters", "client.py", "__init__.py", "__main__.py")
WORLD = {
    *(
        "asyncio",
        "concurrent",
        "ctypes",
        "fcntl",
        "ftplib",
        "getpass",
        "glob",
        "http",
        "io",
        "mmap",
    ),
    *(
        "multiprocessing",
        "os",
        "pathlib",
        "pty",
        "random",
        "resource",
        "secrets",
        "select",
        "shelve",
    ),
    *(
        "shutil",
        "signal",
        "smtplib",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "termios",
    ),
    *("threading", "time", "urllib", "uuid", "webbrowser"),
}


def _imports(module: Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def _under(*names: str) -> list[Module]:
    return [
        module
        for module in modules("src")
        if any(module.path.is_relative_to(SRC / name) for name in names)
    ]


@pytest.mark.parametrize("module", _under(*PURE, *LIGHT), ids=lambda module: module.name)
def test_imports_the_standard_library_only(module: Module) -> None:
    allowed = STANDARD | {"ouvrage"} | ELSEWHERE.get(module.name, set())
    allowed |= NEWER.get(module.name, set())
    assert not [
        f"{module.name}:{line} imports {name}"
        for line, name in _imports(module)
        if name.split(".")[0] not in allowed
        and not (module.path.name == "__main__.py" and name.startswith("ouvrage"))
    ]


@pytest.mark.parametrize("module", _under(*PURE), ids=lambda module: module.name)
def test_a_pure_layer_does_not_touch_the_world(module: Module) -> None:
    assert not [
        f"{module.name}:{line} imports {name}"
        for line, name in _imports(module)
        if name.split(".")[0] in WORLD
    ]
    opened = [
        f"{module.name}:{node.lineno} calls {node.func.id}()"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"open", "input", "print", "exec", "eval"}
    ]
    assert not opened


def test_what_a_user_imports_brings_in_nothing_else_of_ours() -> None:
    client = [*_under("client.py", "__init__.py")]
    ours = [
        f"{module.name}:{line} imports {name}"
        for module in client
        for line, name in _imports(module)
        if name.startswith("ouvrage.") and name != "ouvrage.client"
    ]
    assert not ours


def test_the_whole_repository_reads_as_python_3_10() -> None:
    for module in modules("src", "examples"):
        ast.parse(module.text, filename=str(ROOT / module.name), feature_version=(3, 10))


def test_nothing_but_a_server_or_an_agent_is_asynchronous() -> None:
    assert not [
        f"{module.name}:{node.lineno}"
        for module in _under(*PURE, *LIGHT, "cli", "console", "store")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.AsyncFunctionDef)
    ]

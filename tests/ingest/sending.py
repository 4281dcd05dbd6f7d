"""Nodes that send telemetry over HTTP, and batches for them to send."""

from __future__ import annotations

from typing import Any

import httpx2

from ouvrage.server.credentials import new_secret
from ouvrage.store.platform.people import NodeKeyRow, add_node_key
from ouvrage.wire.samples import GPU, NODE, Batch, encode
from tests.support.server import Running

SOURCE = "5" * 32
START = 1_790_000_000_000_000
SECOND = 1_000_000


def node_key(server: Running) -> tuple[str, str]:
    """A node's id and key, as enrolling gives them."""
    platform = server.platform
    made, node = new_secret(platform, "node key"), platform.ids()
    with platform.writing() as tx:
        row = NodeKeyRow(node_key=made.id, node=node, hash=made.hash, created_us=tx.now_us)
        add_node_key(tx.connection, row)
    return node, made.text


def batch(
    sequence: int, *, source: str = SOURCE, gpus: int = 2, moments: int = 5, at_us: int = START
) -> bytes:
    """A batch of steady figures; its moments follow those of the batch before."""
    first = at_us + sequence * moments * SECOND
    times = tuple(first + n * SECOND for n in range(moments))
    rows = range(gpus * moments)
    gpu = {name: [min(most, 50 + row) for row in rows] for name, most in GPU.items()}
    node: dict[str, list[int | None]] = {name: [500] * moments for name in NODE}
    node["cpu_permille"] = [None, *node["cpu_permille"][1:]]
    devices = tuple(f"GPU-{n}" for n in range(gpus))
    return encode(
        Batch(source=source, sequence=sequence, times=times, devices=devices, gpu=gpu, node=node)
    )


def post(http: httpx2.Client, key: str, content: bytes, path: str = "/v1/samples") -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/gzip"}
    return http.post(path, content=content, headers=headers)

# pyright: basic, reportMissingImports=false
"""Samples of many GPUs, made from a seed: eight columns, a row for each GPU every ten seconds.

Decides the shape of what is measured: jobs of about four hours that belong to one of 200 tenants,
power that follows utilisation with noise of some watts, a counter of energy that adds that power up,
memory that stands while a job runs. How well such rows can be packed depends on the noise alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bench.archive.usage import SCHEMA, STEP_S

GPUS = 1_000
TENANTS = 200
START_US = 1_793_491_200_000_000
"""2026-11-01T00:00:00Z, in microseconds."""
JOB_STEPS = 1_500
NOISE_MW, NOISE_PERCENT = 4_000, 4


def samples(steps: int, seed: int = 7) -> pa.Table:
    """``GPUS × steps`` rows in the order in which they come: all GPUs at a moment, then the next."""
    rng = np.random.default_rng(seed)
    size = (steps, GPUS)
    job, jobs = _jobs(rng, size)
    util = rng.integers(20, 98, jobs)[job] + np.rint(rng.normal(0, NOISE_PERCENT, size))
    util = np.clip(util, 0, 100).astype(np.int64)
    power = 60_000 + util * 5_500 + np.rint(rng.normal(0, NOISE_MW, size)).astype(np.int64)
    power = np.maximum(power, 0)
    energy = rng.integers(10**9, 10**12, GPUS) + np.cumsum(power * STEP_S, axis=0)
    moments = START_US + np.arange(steps, dtype=np.int64) * STEP_S * 1_000_000
    memory = rng.integers(4_000, 80_000, jobs)
    columns = {
        "t_us": np.repeat(moments, GPUS),
        "gpu": np.tile(np.arange(GPUS, dtype=np.int32), steps),
        "job": job.reshape(-1).astype(np.int32),
        "tenant": rng.integers(0, TENANTS, jobs)[job].reshape(-1).astype(np.int16),
        "util": util.reshape(-1).astype(np.uint8),
        "power_mw": power.reshape(-1).astype(np.int32),
        "energy_mj": energy.reshape(-1),
        "memory_mib": memory[job].reshape(-1).astype(np.int32),
    }
    return pa.table(columns, schema=SCHEMA)


def _jobs(rng: np.random.Generator, size: tuple[int, int]) -> tuple[np.ndarray, int]:
    """The number of the job on each GPU at each step, and how many there are."""
    begins = rng.random(size) < 1 / JOB_STEPS
    begins[0] = True
    number = np.cumsum(begins.reshape(-1)).reshape(size) - 1
    job = np.maximum.accumulate(np.where(begins, number, 0), axis=0)
    return job, int(job.max()) + 1

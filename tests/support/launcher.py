"""Starts ranks as torchrun does: the same variables, one process each; ``LAUNCHER`` is the program."""

from __future__ import annotations

LAUNCHER = '''\
"""launcher.py JOB NODE NODES RANKS_HERE COMMAND...: the ranks of one node; ends as the worst of them."""
import os, subprocess, sys

job, node, nodes, here = sys.argv[1], *map(int, sys.argv[2:5])
ranks = [
    subprocess.Popen(
        sys.argv[5:],
        env=os.environ | {
            "RANK": str(node * here + local), "LOCAL_RANK": str(local),
            "WORLD_SIZE": str(nodes * here), "LOCAL_WORLD_SIZE": str(here),
            "GROUP_RANK": str(node), "GROUP_WORLD_SIZE": str(nodes),
            "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_RUN_ID": job,
        },
    )
    for local in range(here)
]
sys.exit(max(rank.wait() for rank in ranks))
'''
TRAIN = """\
import os, time
for epoch in range(1, 5):
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        pass
    print(f"Epoch {epoch}/4 rank {os.environ['RANK']}", flush=True)
"""

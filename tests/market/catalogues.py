"""Small catalogues in the forms that others publish, made up, with every oddity that was found there."""

from __future__ import annotations

import json
from dataclasses import replace

from ouvrage.adapters.catalogues.forms import read_catalogue
from ouvrage.adapters.catalogues.rows import Context, Parsed

HEAD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo\n"


def info(each: int, count: int, total: int) -> str:
    value = (
        "{'Gpus': [{'Name': 'X', 'Manufacturer': 'NVIDIA', 'Count': %d.0, 'MemoryInfo': "
        "{'SizeInMiB': %d}}], 'TotalGpuMemoryInMiB': %d}"
    )
    return f'"{value % (count, each, total)}"'


AWS = HEAD + "".join(
    (
        f"g5.xlarge,A10G,1,4,16,eu-west-1,0.41,1.006,eu-west-1a,{info(24576, 1, 24576)}\n",
        f"p4d.24xlarge,A100,8,96,1152,eu-west-1,,32.77,eu-west-1b,{info(40960, 8, 327680)}\n",
        "m5.large,,,2,8,eu-west-1,0.04,0.107,eu-west-1a,\n",
    )
)
RUNPOD = HEAD + "".join(
    (
        f"1x_A100-80GB_SECURE,A100-80GB,1.0,8.0,117.0,CA,1.39,1.39,CA-MTL-1,{info(80, 1, 80)}\n",
        f"2x_A100-80GB_SECURE,A100-80GB,2.0,16.0,234.0,CA,2.78,2.78,CA-MTL-1,{info(80, 2, 160)}\n",
    )
)
LAMBDA = HEAD + "".join(
    f"gpu_8x_v100,V100,8.0,92.0,448.0,{region},,6.32,,{info(16384, 8, 16384)}\n"
    for region in ("us-east-1", "us-west-1", "me-west-1")
)
VAST_CSV = HEAD + (
    f'2x-H200-32-65536,H200,2,32,64.0,"France, FR, EU",0.00,5.18,,{info(287542, 2, 287542)}\n'
)
GCP = HEAD + "".join(
    (
        "a2-highgpu-1g,,,12.0,85.0,us-central1,0.36975,0.73948,us-central1-a,\n",
        f",A100,1,,,us-central1,0.90,2.93391,us-central1-a,{info(40960, 1, 40960)}\n",
        f",T4,1,,,us-central1,,0.35,us-central1-a,{info(15360, 1, 15360)}\n",
        "n1-standard-4,,,4.0,15.0,us-central1,,0.19,us-central1-a,\n",
        ",tpu-v6e-128,1,,,us-central1,155.52,345.6,us-central1-b,tpu-v6e-128\n",
    )
)
GPUHUNT = """\
instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags
i1,us,0.5,30,240,1,A10,24.0,False,,nvidia,
i1,us,0.2,30,240,1,A10,24.0,True,,nvidia,
c1,eu,0.1,8,32,0,,,False,100,,
i9,us,0.9,30,240,1,,24.0,False,,nvidia,
i8,us,cheap,30,240,1,A10,24.0,False,,nvidia,
"""
OFFER = {
    "id": 11,
    "machine_id": 900,
    "host_id": 77,
    "gpu_name": "RTX 4090",
    "gpu_ram": 24564,
    "num_gpus": 1,
    "cpu_cores_effective": 24.0,
    "cpu_ram": 64393,
    "disk_space": 1607.875,
    "dph_base": 0.2466,
    "dph_total": 0.24668,
    "min_bid": 0.2,
    "storage_cost": 0.15,
    "inet_up_cost": 0.003,
    "inet_down_cost": 0.001,
    "hosting_type": 0,
    "geolocation": "Sweden, SE",
    "score": 300.5,
}
VAST = json.dumps(
    {
        "offers": [
            OFFER,
            {**OFFER, "id": 12, "score": 310.0, "dph_total": 0.25},
            {**OFFER, "id": 13, "num_gpus": 2, "dph_total": 0.49, "min_bid": None},
            {**OFFER, "id": 14, "machine_id": 901, "hosting_type": 1, "min_bid": 0},
            {**OFFER, "id": 15, "machine_id": 902, "dph_total": None},
            "not an offer",
        ]
    }
)
TRIAL = """\
name,provider,gpu,vcpus,memory_gib,price_per_hour,currency
standard,Genesis Cloud,RTX 3080,4,12,0.30,USD
optimised,Genesis Cloud,RTX 3080,8,32,0.36,USD
"""
TRIAL_PROFILE = """\
unit = "epoch"
units = 300
gpu = "RTX 3080"
vcpus = 4
memory_gib = 12

[time]
compute = 64.8
waits = 62.4
"""


def context(name: str = "test", file: str = "offers.csv") -> Context:
    return Context(catalogue=name, file=file, read_on="2026-11-30")


def parsed(text: str, cloud: str = "test", file: str = "offers.csv") -> Parsed:
    return read_catalogue(text, replace(context(cloud), file=file))

"""A Redfish service of our own, for what sushy's does not have: power, limits, logs, a restore policy, and every kind of trouble."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = "/redfish/v1/"
PDU = f"{ROOT}PowerEquipment/RackPDUs/1"
SYSTEM, CHASSIS, MANAGER = f"{ROOT}Systems/1", f"{ROOT}Chassis/1", f"{ROOT}Managers/1"


def link(address: str) -> dict[str, str]:
    return {"@odata.id": address}


TREE: dict[str, Any] = {
    ROOT: {
        "@odata.id": ROOT, "Id": "RootService", "Name": "Root", "RedfishVersion": "1.9.0",
        "Systems": link(f"{ROOT}Systems"), "Chassis": link(f"{ROOT}Chassis"),
    },
    f"{ROOT}Systems": {"@odata.id": f"{ROOT}Systems", "Name": "Systems", "Members": [link(SYSTEM)], "Members@odata.count": 1},
    SYSTEM: {
        "@odata.id": SYSTEM, "Id": "1", "Name": "n1", "Manufacturer": "Contoso", "Model": "3500", "PowerState": "On",
        "PowerRestorePolicy": "AlwaysOff", "LogServices": link(f"{SYSTEM}/LogServices"),
        "Links": {"Chassis": [link(CHASSIS)], "ManagedBy": [link(MANAGER)]},
        "Actions": {"#ComputerSystem.Reset": {
            "target": f"{SYSTEM}/Actions/ComputerSystem.Reset",
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "GracefulShutdown", "ForceRestart"],
        }},
    },
    CHASSIS: {
        "@odata.id": CHASSIS, "Id": "1", "Name": "Chassis", "Power": link(f"{CHASSIS}/Power"),
        "Thermal": link(f"{CHASSIS}/Thermal"),
    },
    f"{CHASSIS}/Power": {
        "PowerControl": [{
            "PowerConsumedWatts": 812, "PowerCapacityWatts": 2000, "PowerLimit": {"LimitInWatts": None},
        }],
        "PowerSupplies": [
            {"Name": "PSU 1", "Status": {"State": "Enabled", "Health": "OK"}, "LastPowerOutputWatts": 790},
            {"Name": "PSU 2", "Status": {"State": "Enabled", "Health": "Critical"}, "LastPowerOutputWatts": 0},
            {"Name": "PSU 3", "Status": {"State": "Absent"}},
        ],
        "Voltages": [{"Name": "12V", "ReadingVolts": 12.18, "Status": {"State": "Enabled"}, "LowerThresholdCritical": 10.8}],
    },
    f"{CHASSIS}/Thermal": {
        "Temperatures": [
            {"Name": "Inlet", "ReadingCelsius": 24.5, "Status": {"State": "Enabled", "Health": "OK"}},
            {"Name": "Exhaust", "ReadingCelsius": 71, "Status": {"State": "Enabled"}, "UpperThresholdNonCritical": 70},
        ],
        "Fans": [{"FanName": "Fan 1", "Reading": 5400, "ReadingUnits": "RPM", "Status": {"State": "Enabled", "Health": "OK"}}],
    },
    **{f"{PDU}/Outlets/{name}": {
        "@odata.id": f"{PDU}/Outlets/{name}", "Id": name, "Name": f"Outlet {name}", "PowerState": "On", "PowerRestorePolicy": "LastState",
        "PowerWatts": {"Reading": 312.5},
        "Actions": {"#Outlet.PowerControl": {"target": f"{PDU}/Outlets/{name}/Outlet.PowerControl"}},
    } for name in ("A1", "A2")},
    f"{SYSTEM}/LogServices": {"Members": [link(f"{SYSTEM}/LogServices/AuditLog"), link(f"{SYSTEM}/LogServices/SEL")]},
    f"{SYSTEM}/LogServices/AuditLog": {"Id": "AuditLog", "Entries": link(f"{SYSTEM}/LogServices/AuditLog/Entries")},
    f"{SYSTEM}/LogServices/SEL": {
        "Id": "SEL", "MaxNumberOfRecords": 4, "Entries": link(f"{SYSTEM}/LogServices/SEL/Entries"),
    },
    f"{SYSTEM}/LogServices/SEL/Entries": {
        "Members": [
            {"Id": "2", "Created": "2026-11-30T11:00:00+00:00", "Severity": "Critical", "SensorType": "Power Supply", "Message": "AC lost"},
            {"Id": "1", "Created": "2026-11-30T10:00:00Z", "Severity": "OK", "Message": "Powered on"},
        ],
    },
}  # fmt: skip


class Bmc:
    """The tree, what it was asked, and its troubles: ``broken`` answers by method and path, ``deaf`` orders change nothing."""

    def __init__(self) -> None:
        self.tree = copy.deepcopy(TREE)
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.broken: dict[tuple[str, str], list[tuple[int, Mapping[str, str], Any]]] = {}
        self.deaf = False
        self.etag: str | None = None

    def __call__(
        self, method: str, path: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], Any]:
        self.asked.append((method, path))
        troubles = self.broken.get((method, path))
        if troubles:
            return troubles.pop(0) if len(troubles) > 1 else troubles[0]
        path = ROOT if path.rstrip("/") == ROOT.rstrip("/") else path
        if method == "POST" and path.endswith("Reset"):
            self.bodies.append(body)
            if not self.deaf:
                self.tree[SYSTEM]["PowerState"] = "On" if body["ResetType"] == "On" else "Off"
            return 204, {}, b""
        if method == "POST" and path.endswith("/Outlet.PowerControl"):
            self.bodies.append(body)
            self.tree[path.rpartition("/")[0]]["PowerState"] = body["PowerState"]
            return 204, {}, b""
        if path not in self.tree:
            return (
                404,
                {},
                {"error": {"code": "Base.1.0.ResourceMissing", "message": "there is none"}},
            )
        if method == "PATCH":
            return self._patched(path, body, headers)
        return 200, {"ETag": self.etag} if self.etag else {}, self.tree[path]

    def _patched(
        self, path: str, body: Any, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], Any]:
        self.bodies.append(body)
        if self.etag and headers.get("If-Match") != self.etag:
            return 412, {}, {"error": {"message": "the tag did not match"}}
        if not self.deaf:
            _merge(self.tree[path], body)
        return 200, {}, self.tree[path]


def _merge(into: Any, new: Any) -> None:
    for name, value in new.items():
        if isinstance(value, dict):
            _merge(into.setdefault(name, {}), value)
        elif isinstance(value, list):
            for old, each in zip(into[name], value, strict=False):
                _merge(old, each)
        else:
            into[name] = value


def sample(name: str) -> Any:
    """A resource of the public samples, or None where they are not here."""
    place = os.environ.get("OUVRAGE_DATA")
    file = Path(place, "redfish", f"{name}.json") if place else None
    return json.loads(file.read_text()) if file and file.exists() else None

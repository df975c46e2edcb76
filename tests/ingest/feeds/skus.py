"""Entries of the Resource SKUs API, in the shape in which it sends them."""

from typing import Any

Entry = dict[str, Any]

NC24ADS_A100_V4 = {
    "vCPUs": "24",
    "MemoryGB": "220",
    "GPUs": "1",
    "MaxResourceVolumeMB": "65536",
    "NvmeDiskSizeInMiB": "915527",
    "NvmeSizePerDiskInMiB": "915527",
    "UncachedDiskIOPS": "30000",
    "UncachedDiskBytesPerSecond": "1024000000",
    "CachedDiskBytes": "274877906944",
    "MaxDataDiskCount": "8",
    "MaxNetworkInterfaces": "2",
    "HyperVGenerations": "V2",
    "CpuArchitectureType": "x64",
    "RdmaEnabled": "False",
    "AcceleratedNetworkingEnabled": "True",
    "LowPriorityCapable": "True",
    "UltraSSDAvailable": "True",
}


def entry(
    name: str = "Standard_NC24ads_A100_v4", region: str = "southcentralus", /, **capabilities: str | None
) -> Entry:
    """Return the entry of a size in a region; a capability of None is left out."""
    values = NC24ADS_A100_V4 | capabilities
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "size": name.removeprefix("Standard_"),
        "family": "StandardNCADSA100v4Family",
        "kind": None,
        "locations": [region],
        "locationInfo": [{"location": region, "zones": ["1", "3"], "zoneDetails": []}],
        "capabilities": [{"name": key, "value": value} for key, value in values.items() if value is not None],
        "restrictions": [
            {
                "type": "Location",
                "values": [region],
                "restrictionInfo": {"locations": [region], "zones": ["1", "2", "3"]},
                "reasonCode": "NotAvailableForSubscription",
            }
        ],
    }


DISK = {"resourceType": "disks", "name": "Premium_LRS", "locations": ["southcentralus"], "capabilities": []}

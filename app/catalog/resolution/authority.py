"""Whose word counts first on a field: one table, which docs/catalog.md shows."""

from app.catalog.fields import SubjectKind
from app.catalog.readings import AUTHORITY, SourceKind

API_FIRST: tuple[SourceKind, ...] = ("vendor_api", "vendor_page", "vendor_announcement", "third_party")

API_FIELDS = frozenset(
    {
        "vcpus",
        "arch",
        "memory_gib",
        "temp_disk_gib",
        "nvme_disk_gib",
        "nvme_disk_count",
        "max_data_disks",
        "uncached_disk_iops",
        "uncached_disk_mbps",
        "max_nics",
        "premium_storage",
        "generation_1",
        "generation_2",
        "accelerated_networking",
        "ephemeral_os_disk",
        "memory_preserving_updates",
        "hibernation",
    }
)
"""The fields of a size that the Resource SKUs API defines: a deployment gets what the API says, not what a page says.

GPUs are not among them, since the API counts a part of a GPU as one, nor is what depends on the region or the zone.
"""


def authority(kind: SubjectKind, field: str) -> tuple[SourceKind, ...]:
    """Give the kinds of source in the order in which they count on a field."""
    return API_FIRST if kind == "size" and field in API_FIELDS else AUTHORITY

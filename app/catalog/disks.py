"""The words that describe managed disks: types, redundancies, and what a price is per."""

from typing import Literal, get_args

DiskType = Literal["standard_hdd", "standard_ssd", "premium_ssd", "premium_ssd_v2", "ultra_disk"]
Redundancy = Literal["lrs", "zrs"]
PricedPer = Literal["month", "gib_hour", "iops_hour", "mbps_hour"]

DISK_TYPES: tuple[DiskType, ...] = get_args(DiskType)
REDUNDANCIES: tuple[Redundancy, ...] = get_args(Redundancy)
"""Copies in one zone (`lrs`) or in three (`zrs`)."""
PRICED_PER: tuple[PricedPer, ...] = get_args(PricedPer)
"""A disk of one size is priced a month; one of any size by its GiB, IOPS and MBps, each an hour."""

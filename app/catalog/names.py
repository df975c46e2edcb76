"""When two spellings are one name: `ND40rs_v2`, `standard_nd40rs_v2` and `Standard_ND40rs_v2` are one size."""

import re


def size_key(name: str) -> str:
    """The key of a size's name: lower case, without `Standard_`."""
    return name.strip().lower().removeprefix("standard_")


def series_key(name: str) -> str:
    """The key of a series' name: its letters and digits only (`ND A100 v4-series` and `ND_A100_v4` are one)."""
    bare = re.sub(r"\b(sizes?|vm|virtual machines?)?[\s-]*series\b", " ", name, flags=re.IGNORECASE)
    return re.sub(r"[^a-z0-9+]", "", bare.lower())


def region_key(name: str) -> str:
    """The code of a region, however it is spelled: `West Europe` and `WestEurope` are `westeurope`."""
    return re.sub(r"[\s_-]", "", name).lower()

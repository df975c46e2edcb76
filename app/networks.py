"""IP networks in settings."""

from contextlib import suppress
from ipaddress import ip_network


def network_hint(text: str) -> str:
    """Return what is wrong with an address that has the length of its network behind it; empty for all else."""
    with suppress(ValueError):
        return f"has host bits set; the network is {ip_network(text, strict=False)}"
    return ""

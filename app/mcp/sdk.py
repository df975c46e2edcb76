"""Whether the official SDK is installed, which is an extra; nothing here imports it."""

from importlib.util import find_spec

NOT_INSTALLED = "MCP needs the official SDK, which is not installed; run `pip install 'vmsizes[mcp]'`."


def is_installed() -> bool:
    """Return whether the SDK can be imported."""
    return find_spec("mcp") is not None

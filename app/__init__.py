"""A catalog of cloud VM sizes: know them, calculate with them, receive figures, show them."""

from pathlib import Path


def shipped_folder(name: str) -> Path:
    """Return `migrations` or `seeds`: an installed package has them inside, a checkout beside it."""
    package = Path(__file__).resolve().parent
    inside = package / name
    return inside if inside.is_dir() else package.parent / name

"""ROOF: the command line `vmsizes`; calls the same functions as the API."""


def main() -> None:
    """Run the command line."""

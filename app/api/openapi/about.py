"""What the document says of the service as a whole, and of its parts."""

from typing import Any

LICENSE = {"name": "MIT", "identifier": "MIT"}

TAGS = {
    "sizes": "Look sizes up, compare them, and see who says what of them and what they cost.",
    "prices": "What sizes cost, by region, system and purchase model.",
    "fit": "Which sizes hold a job or a language model, on how many VMs, at what cost; and what a model needs.",
    "exports": "Whole lists as files, for spreadsheets and dashboards.",
    "models": "Language models whose configuration is known.",
    "catalog": "What the catalog is made of: series, GPUs, regions, sources, and where sources disagree.",
}
"""What each tag holds, in the order in which the documentation shows them."""

_SPELLED = {"gpus": "GPUs", "csv": "as CSV", "parquet": "as Parquet"}


def to_info(info: dict[str, Any], url: str) -> dict[str, Any]:
    """Say where to turn, and what may be done with it.

    That is where the service is reached, where this is known: `/` is no URL to generators, and they refuse it.
    """
    contact = {"name": info["title"], **({"url": url} if url != "/" else {})}
    return {**info, "contact": contact, "license": LICENSE}


def to_summary(words: str) -> str:
    """Write what FastAPI takes from a function's name, `List Gpus`, as a heading: `List GPUs`."""
    first, *rest = words.lower().split()
    return " ".join([first.capitalize(), *(_SPELLED.get(word, word) for word in rest)])

"""Network cells to field values: `InfiniBand / 25 Gbps`, `8 x 200 Gigabit HDR`."""

import re
from decimal import Decimal

from app.ingest.documents.values import (
    Amount,
    FieldValue,
    is_blank,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_integer,
)

GENERATIONS = {"FDR": 56, "EDR": 100, "HDR": 200, "NDR": 400, "XDR": 800}
"""Gbps of one InfiniBand port (4X) by generation, from the InfiniBand Trade Association's roadmap."""

_INFINIBAND = re.compile(r"infini\s?band|\bIB\b|\brdma\b|\b[FEHNX]DR\b", re.IGNORECASE)
_YES = re.compile(r"^(?:yes|true|supported|✓|✔|y|rdma capable)\b", re.IGNORECASE)
_NO = re.compile(r"^(?:no|false|not supported|✗|✘|n)\b", re.IGNORECASE)
_FILLER_WORDS = re.compile(
    r"\b(?:infini\s?band|ethernet|network(?:ing)?|accelerated|nvidia|mellanox|quantum-?\d?|connectx-?\d?|cx\d|[FEHNX]DR|RDMA|IB|GPUDirect|backend|total|with)\b",
    re.IGNORECASE,
)


class UnreadableCell(Exception):
    """A cell that is not understood completely; the message completes the sentence `this cell …`."""


class MissingUnit(UnreadableCell):
    """A number without a unit, in a column whose header has none."""

    def __init__(self) -> None:
        super().__init__("has no unit, neither in the header nor in the cell")


def read_network(text: str, unit: str | None) -> list[FieldValue]:
    """Return the values of a cell with one or more networks; raise UnreadableCell unless all of it is understood."""
    values: list[FieldValue] = []
    # A comma before three digits is a separator of thousands.
    for piece in re.split(r"\s*(?:[/;+]|,(?!\d{3}\b))\s*|\s+and\s+", normalize_rates(text)):
        if piece:
            values.extend(_read_network_part(piece.strip(" ()"), unit))
    return values


def read_infiniband(text: str, unit: str | None) -> list[FieldValue]:
    """Return the values of a cell about InfiniBand: whether there is any, and the Gbps of the whole VM."""
    text = normalize_rates(text).strip()
    if _NO.match(text):
        return [FieldValue("infiniband", False)]
    if _YES.match(text) and not re.search(r"\d", text):
        return [FieldValue("infiniband", True)]
    amount = _amount(text)
    if amount is None:
        if _INFINIBAND.search(text) and not re.search(r"\d", _FILLER_WORDS.sub("", text)):
            return [FieldValue("infiniband", True)]
        raise UnreadableCell("does not say whether there is InfiniBand")
    gbps = _gbps(amount, text, unit)
    return [
        FieldValue("infiniband", True),
        FieldValue("infiniband_gbps", rounded(gbps * (amount.times or 1)), amount.product_note(gbps, "Gbps")),
    ]


def to_gbps(number: Decimal, unit: str, text: str) -> Decimal | None:
    """Convert to Gbps; return None for GB/s unless the InfiniBand generation in the text shows that bits are meant."""
    mbps = to_base_unit(number, unit, "network")
    if mbps is not None:
        return rounded(mbps / 1000)
    generation = next((rate for name, rate in GENERATIONS.items() if re.search(rf"\b{name}\b", text)), None)
    return number if unit == "GBps" and generation == number else None


def _read_network_part(piece: str, unit: str | None) -> list[FieldValue]:
    if _INFINIBAND.search(piece):
        return read_infiniband(piece, unit)
    # A part without digits, such as `Ethernet`, states no bandwidth.
    if is_blank(piece) or not re.search(r"\d", piece):
        if _FILLER_WORDS.sub("", piece).strip():
            raise UnreadableCell(f"has unknown words: {piece}")
        return []
    amount = _amount(piece)
    stated = amount.unit(unit) if amount else None
    if amount is None or stated is None:
        raise UnreadableCell("is not one number with a unit")
    mbps = to_base_unit(amount.total, stated, "network")
    whole = None if mbps is None else to_integer(mbps)
    if whole is None:
        raise UnreadableCell(f"is in {stated}, which is not a unit of bandwidth")
    return [FieldValue("network_mbps", whole, amount.product_note(amount.number, stated))]


def _amount(text: str) -> Amount | None:
    digit = re.search(r"\d", text)
    amount = to_amount(text[digit.start() :]) if digit else None
    if amount is None:
        return None
    left = re.sub(r"[KMGT]i?[Bb]ps", "", _FILLER_WORDS.sub("", text[: digit.start()] + amount.suffix if digit else ""))
    if re.search(r"\w", left):
        raise UnreadableCell("is not one number" if re.search(r"\d", left) else f"has unknown words: {left.strip()}")
    return amount


def _gbps(amount: Amount, text: str, unit: str | None) -> Decimal:
    stated = amount.unit(unit)
    gbps = None if stated is None else to_gbps(amount.number, stated, text)
    if gbps is None:
        raise UnreadableCell("has no unit of an InfiniBand bandwidth")
    return gbps

"""Scale-up and scale-out columns: pages swap the two words, so the unit says what a column holds."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from app.ingest.documents.blocks import Passage
from app.ingest.documents.page import Finding
from app.ingest.documents.size_tables import Piece, SizeRow
from app.ingest.documents.units import find_units, rounded, spelled, to_kept
from app.ingest.documents.values import Amount, is_blank, to_amount

_PER_NIC = re.compile(r"\bbandwidth is per NIC\b|\bper NIC\b", re.IGNORECASE)


def is_per_nic(passages: Iterable[Passage]) -> bool:
    """Say whether a note of the page says that the bandwidth is that of one NIC."""
    return any(_PER_NIC.search(passage.text) for passage in passages)


def read_scale_networks(rows: Sequence[SizeRow], *, per_nic: bool) -> Iterator[Finding]:
    """State InfiniBand from a bandwidth in bits and NVLink from one in bytes."""
    for row in rows:
        for piece in row.pieces:
            if piece.part.field == "scale_bandwidth" and not is_blank(piece.text):
                yield from _read(row, piece, per_nic=per_nic)


def _read(row: SizeRow, piece: Piece, *, per_nic: bool) -> Iterator[Finding]:
    amount = to_amount(spelled(piece.text))
    units = find_units(amount.rest) if amount else []
    unit = units[0] if units else piece.part.unit
    if amount is None or unit is None:
        yield row.page.report("is not a bandwidth with a unit", row.line, piece.header, piece.raw)
        return
    mbps = to_kept(amount.number, unit, "network")
    if mbps is None and unit.endswith("Bps"):
        yield row.page.states(row.name, "nvlink", True, piece.raw, row.line, f"{amount.total} {unit}: bytes are NVLink")
        return
    links = _links(row, piece, amount, per_nic=per_nic)
    if mbps is None or links is None:
        detail = "may be the bandwidth of one NIC or of all, nothing on the page decides it"
        yield row.page.report(detail, row.line, piece.header, piece.raw)
        return
    gbps = rounded(mbps / 1000)
    note = f"{links[0]} x {gbps} Gbps{links[1]}"
    yield row.page.states(row.name, "infiniband", True, piece.raw, row.line, "bits are InfiniBand")
    yield row.page.states(row.name, "infiniband_gbps", rounded(gbps * links[0]), piece.raw, row.line, note)


def _links(row: SizeRow, piece: Piece, amount: Amount, *, per_nic: bool) -> tuple[Decimal, str] | None:
    if amount.times is not None:
        return Decimal(amount.times), ""
    for other in row.pieces:
        if other.part.field == "scale_nics" and other.part.side == piece.part.side:
            nics = to_amount(other.text)
            if nics and nics.number == 1:
                return Decimal(1), ""
            if per_nic and nics and not nics.rest:
                return nics.number, ", per NIC as a note of the page says"
    return None

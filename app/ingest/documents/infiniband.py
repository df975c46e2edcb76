"""The InfiniBand of a whole VM: computed from that of one GPU, doubted where it may be that of one link of several."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from app.catalog.names import size_key
from app.catalog.readings import Report, Statement
from app.ingest.documents.page import Finding

_LINKS = frozenset({Decimal(200), Decimal(400), Decimal(800)})
"""Gbps of one port since HDR. Sizes with several GPUs have a port for each since then, older ones one port in all."""


def with_infiniband(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Multiply the InfiniBand of one GPU by the GPUs, where both are stated; report what may be of one port."""
    counts: dict[str, Fraction] = {}
    for finding in findings:
        if isinstance(finding, Statement) and finding.field == "gpu_count" and isinstance(finding.value, Fraction):
            counts.setdefault(size_key(finding.subject), finding.value)
    for finding in findings:
        count = counts.get(size_key(finding.subject)) if isinstance(finding, Statement) else None
        yield from _stated(finding, count) if isinstance(finding, Statement) and count else [finding]


def _stated(finding: Statement, count: Fraction) -> Iterator[Finding]:
    if finding.field == "infiniband_gbps" and count > 1 and not finding.note and finding.value in _LINKS:
        detail = f"may be the rate of one of several links of {finding.subject} or of all of them"
        yield Report(file=finding.file, line=finding.line, column=finding.field, cell=finding.raw, detail=detail)
        return
    yield finding
    if finding.field == "infiniband_gbps_per_gpu" and count.denominator == 1 and isinstance(finding.value, Decimal):
        yield _product(finding, finding.value, int(count))


def _product(per_gpu: Statement, gbps: Decimal, count: int) -> Statement:
    return Statement(
        kind="size", subject=per_gpu.subject, field="infiniband_gbps", value=gbps * count,
        raw=per_gpu.raw, file=per_gpu.file, line=per_gpu.line, source=per_gpu.source,
        note=f"{count} x {gbps} Gbps, one link a GPU",
    )  # fmt: skip

"""Writes docs/accuracy.md from the recorded table."""

from collections.abc import Iterable

from app.fit.results import FamilyAccuracy
from app.settings import PROJECT

PAGE = PROJECT / "docs" / "accuracy.md"

_BEGIN, _END = "<!-- table: python -m benchmarks.accuracy --write -->", "<!-- end of the table -->"


def write_page(families: Iterable[FamilyAccuracy]) -> None:
    """Replace the table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(_BEGIN)[0], text.split(_END)[1]
    PAGE.write_text(f"{before}{_BEGIN}\n{table(families)}\n{_END}{after}", encoding="utf-8")


def table(families: Iterable[FamilyAccuracy]) -> str:
    """Return the table in Markdown."""
    lines = [
        "Left out of the fit, as models not in the data are:",
        "",
        "| family | left out | n | median error | in range | high / low | compared on |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    families = list(families)
    lines += [
        f"| `{one.family}`: {one.title} | {one.left_out} | {one.left_out_n or 0:,} | {one.leave_one_out_error:.1%} "
        f"| {one.left_out_in_range_share or 0:.0%} | {one.left_out_range_width or 0:.2f} | {one.compared_on} |"
        for one in families
        if one.leave_one_out_error is not None
    ]
    lines += [
        "",
        "All measurements, with the constants that are fitted to them or to others:",
        "",
        "| family | figure | n | in range | high / low | median error | worst | measured by |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{one.family}`: {one.title} | `{one.figure}` | {one.n:,} "
        f"| {one.in_range_share:.0%} | {one.range_width:.2f} "
        f"| {one.median_error:.1%} | {one.worst_ratio:.2f} | {one.source} ({one.license}) |"
        for one in families
    ]
    return "\n".join(lines)

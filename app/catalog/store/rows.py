"""From what a reader hands over to rows of the tables; pure but for the subjects it is told."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from app.catalog.fields import FIELDS, to_text
from app.catalog.names import size_key
from app.catalog.readings import AliasRow, BenchmarkRow, CorrectionRow, ModelRow, RegionRow, Report, Statement
from app.catalog.resolution.subjects import Subjects

Row = dict[str, Any]
PRICE_KEY = ("size_key", "region", "os", "purchase", "valid_from")
FACT_KEY = ("kind", "subject", "field", "source_id")


def fact_row(statement: Statement, subjects: Subjects) -> Row:
    """One statement as a row of the fact table, before it is judged."""
    return {
        "kind": statement.kind,
        "subject": subjects.of(statement),
        "field": statement.field,
        "source_id": statement.source,
        "written_as": statement.subject,
        "value": to_text(statement.value),
        "unit": FIELDS[statement.kind][statement.field].unit,
        "raw": statement.raw,
        "file": statement.file,
        "line": statement.line,
        "note": statement.note,
    }


def fact_rows(statements: Iterable[Statement], subjects: Subjects) -> tuple[dict[tuple[str, ...], Row], list[Report]]:
    """All statements as rows by key; a source that says two things of one field is reported, its first word stands."""
    rows: dict[tuple[str, ...], Row] = {}
    reports = []
    for statement in statements:
        row = fact_row(statement, subjects)
        first = rows.setdefault(tuple(row[name] for name in FACT_KEY), row)
        if first["value"] != row["value"]:
            said = f"says {row['value']} here and {first['value']} at line {first['line']}; the first is kept"
            reports.append(
                Report(file=row["file"], line=row["line"], column=row["field"], cell=row["raw"], detail=said)
            )
    return rows, reports


def kept_fact(row: Mapping[str, Any], subjects: Subjects) -> Row:
    """A fact that is already kept; an alias learnt since then may have told whom it speaks of."""
    kept = {name: value for name, value in row.items() if name not in {"verdict", "reason", "corrected_value"}}
    if kept["kind"] == "size":
        kept["subject"] = subjects.size(kept["written_as"])
    return kept


def alias_row(alias: AliasRow) -> Row:
    """An alias as a row."""
    return {
        "alias_key": size_key(alias.alias),
        "alias": alias.alias,
        "size_key": size_key(alias.size),
        "source_id": alias.source,
        "reason": alias.reason,
    }


def correction_row(correction: CorrectionRow, subjects: Subjects) -> Row:
    """A correction as a row."""
    row = _cited(correction)
    if correction.kind == "size":
        row["subject"] = subjects.size(correction.subject)
    return row


def region_row(region: RegionRow) -> Row:
    """A region as a row."""
    return _cited(region)


def _cited(row: RegionRow | CorrectionRow | BenchmarkRow) -> Row:
    """The fields of a row, its source by id, without the place where it was read."""
    fields = asdict(row)
    return {"source_id": fields.pop("source")} | {k: v for k, v in fields.items() if k not in {"file", "line"}}


def benchmark_row(benchmark: BenchmarkRow, subjects: Subjects) -> Row:
    """A benchmark as a row."""
    row = _cited(benchmark)
    row["series_id"] = subjects.series_id(row.pop("series"))
    row["value"] = float(benchmark.value)
    return row


def model_row(model: ModelRow) -> Row:
    """A language model as a row."""
    return model.preset.model_dump() | {"aliases": "; ".join(model.preset.aliases) or None}

"""Saves the rules by which prices differ from list prices; a file that is read again replaces its rules."""

from dataclasses import asdict, replace
from datetime import date

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from app.catalog.adjustments import MAX_RULES
from app.catalog.column_types import table_of
from app.catalog.models import Adjustment, Region, Size
from app.catalog.names import glob_to_like
from app.catalog.readings import AdjustmentRow, Reading, Report
from app.catalog.regions import explain_unknown_region
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.upsert import DbRow, TableChange, save_rows
from app.errors import BadData

ADJUSTMENT = table_of(Adjustment)


def save_adjustments(session: Session, reading: Reading, subjects: SubjectKeys) -> tuple[TableChange, list[Report]]:
    """Write the rules of a reading; a rule for sizes that the catalog lacks is reported.

    Raises BadData for an unknown region, and where there are more than MAX_RULES rules.
    """
    files = [file for file in reading.files if file.kind == "adjustments"]
    if not files:
        return TableChange(), []
    regions = set(session.execute(select(table_of(Region).c.code)).scalars())
    rows: list[DbRow] = []
    reports: list[Report] = []
    for entry in reading.adjustments:
        rule = entry.rule
        if rule.region is not None and rule.region not in regions:
            detail = explain_unknown_region(rule.region, regions)
            raise BadData(detail, file=entry.file, line=entry.line, column="region")
        if rule.size is not None:
            rule = replace(rule, size=_to_key(rule.size, subjects))
            if not _has_size(session, rule.size):
                reports.append(_unmatched(entry))
        rows.append({"source_id": entry.source, "position": entry.position, **asdict(rule)})
    replaced = frozenset[str]().union(*(file.sources for file in files))
    kept = session.execute(select(ADJUSTMENT).where(ADJUSTMENT.c.source_id.not_in(replaced))).mappings()
    others = [dict(row) for row in kept]
    if len(others) + len(rows) > MAX_RULES:
        raise BadData(f"makes {len(others) + len(rows)} rules in all; at most {MAX_RULES} are kept", file=files[0].file)
    return save_rows(session, Adjustment, [*others, *rows], replace_all=True), reports


def is_rule_edge_between(session: Session, after: date, until: date) -> bool:
    """Check whether a rule began or ended after one day and by another."""
    rule = ADJUSTMENT.c
    began = (rule.valid_from > after) & (rule.valid_from <= until)
    ended = (rule.valid_until >= after) & (rule.valid_until < until)
    return bool(session.execute(select(exists().where(or_(began, ended)))).scalar_one())


def _to_key(glob: str, subjects: SubjectKeys) -> str:
    """Return the glob on keys; another name of a size is replaced by the size's own."""
    return glob if "*" in glob or "?" in glob else subjects.size_key(glob)


def _has_size(session: Session, glob: str | None) -> bool:
    key = table_of(Size).c.key
    has_match = select(exists().where(key.like(glob_to_like(glob or "*"), escape="\\")))
    return bool(session.execute(has_match).scalar_one())


def _unmatched(entry: AdjustmentRow) -> Report:
    detail = "matches no size of the catalog; the rule is kept for sizes to come"
    return Report(file=entry.file, line=entry.line, column="size", cell=entry.rule.size, detail=detail)

"""Saves the rules by which prices differ from list prices; a file that is read again replaces its rules."""

from dataclasses import asdict, replace
from datetime import date

from sqlalchemy import exists, or_, select
from sqlalchemy.orm import Session

from app.catalog.adjustments import MAX_RULES
from app.catalog.column_types import table_of
from app.catalog.models import Adjustment, Region, Size
from app.catalog.names import glob_to_like
from app.catalog.readings import Reading, Report
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
            is_glob = "*" in rule.size or "?" in rule.size
            glob = rule.size if is_glob else subjects.size_key(rule.size)  # another name of a size means the size
            rule = replace(rule, size=glob)
            named = exists().where(table_of(Size).c.key.like(glob_to_like(glob), escape="\\"))
            if not session.execute(select(named)).scalar_one():
                detail = "matches no size of the catalog; the rule is kept for sizes to come"
                cell = entry.rule.size
                reports.append(Report(file=entry.file, line=entry.line, column="size", cell=cell, detail=detail))
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

"""How the databases run statements, as EXPLAIN tells."""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine

from app.db.statements import BoundStatement


def plan_of(engine: Engine, bound: BoundStatement, *first: str) -> str:
    """Return the database's plan of a statement; the statements in `first` are run before."""
    compiled = bound.statement.compiled_for(engine.dialect.name)
    return explain(engine, compiled.sql, bound.parameters, *first)


def explain(engine: Engine, sql: str, parameters: Mapping[str, Any], *first: str) -> str:
    """Return the plan of any SQL."""
    word = "explain query plan" if engine.dialect.name == "sqlite" else "explain"
    with engine.connect() as connection:
        for statement in first:
            connection.exec_driver_sql(statement)
        return "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{word} {sql}", dict(parameters)))


def full_scans(plan: str) -> list[str]:
    """Return the lines of a plan that scan all of offer or price, whatever alias these have in the query."""
    names = r"(offer|priced|price)\b"
    scans = (rf"^SCAN {names}", rf"Seq Scan on {names}")
    return [line for line in plan.splitlines() if any(re.search(scan, line) for scan in scans)]


def sorts(plan: str) -> int:
    """Return how often a plan sorts."""
    return len(re.findall(r"USE TEMP B-TREE FOR|\bSort  \(", plan))

"""A card with two GPUs: some sources count cards, others GPUs."""

from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import Fact
from app.db.engines import read_session as reads
from app.ingest.run import ingest
from tests.factories import NOW, reading, size, source

GPUS = (
    *size("m60-half", kind="gpu", family="M60", aliases="M60; half of an M60 card", memory_gib=Decimal(8)),
    *size("m60", kind="gpu", model="Tesla M60", family="M60", aliases="M60; whole M60 card", memory_gib=Decimal(16)),
    *size("a100-40", kind="gpu", model="A100", family="A100", aliases="A100", memory_gib=Decimal(40)),
    *size("a100-80", kind="gpu", model="A100", family="A100", aliases="A100", memory_gib=Decimal(80)),
)  # fmt: skip


def verdicts(engine: Engine, old: dict[str, Any], new: dict[str, Any], said: str = "verdict") -> dict[str, set[str]]:
    """Return the verdicts on the facts of an older page beside those of a newer one, or the reasons of these."""
    later = source("later", on=date(2026, 1, 1))
    stated = [*GPUS, *size("Standard_X1", **old), *size("Standard_X1", by="later", **new)]
    ingest(engine, reading(stated, sources=[later]), now=NOW)
    with reads(engine) as session:
        facts = session.execute(select(table_of(Fact)).where(table_of(Fact).c.kind == "size")).mappings().all()
    return {field: {fact[said] for fact in facts if fact["field"] == field} for field in old}


def gpus(model: str, count: str, each: int | None) -> dict[str, Any]:
    of_each = {} if each is None else {"gpu_memory_gib_per_gpu": Decimal(each)}
    return {"gpu_model": model, "gpu_count": Fraction(count), **of_each}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (gpus("M60", "1", 8), gpus("M60", "1/2", 16)),
        (gpus("Tesla M60", "2", 16), gpus("Tesla M60", "4", 8)),
        (gpus("M60", "2", None), gpus("M60", "1", 16)),
    ],
)
def test_half_cards_beside_cards_are_no_dispute(engine: Engine, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert all("disputed" not in found for found in verdicts(engine, old, new).values())


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (gpus("A100", "8", 40), gpus("A100", "4", 80)),
        (gpus("M60", "1", 16), gpus("M60", "1/2", 16)),
        (gpus("M60", "4", None), gpus("M60", "1", 16)),
    ],
)
def test_other_counts_stay_disputed(engine: Engine, old: dict[str, Any], new: dict[str, Any]) -> None:
    assert "disputed" in verdicts(engine, old, new)["gpu_count"]


@pytest.mark.first_database
@pytest.mark.parametrize(("new", "counted"), [(gpus("M60", "2", 8), "cards"), (gpus("M60", "1", 16), "half cards")])
def test_the_reason_says_what_the_other_page_counts(engine: Engine, new: dict[str, Any], counted: str) -> None:
    old = gpus("M60", "1", 16) if counted == "cards" else gpus("M60", "2", 8)
    reasons = verdicts(engine, old, new, "reason")["gpu_count"]
    assert any(reason.startswith(f"counts {counted}: ") for reason in reasons)

"""Fit: which sizes meet given needs, on how many VMs, at what cost, and why the others do not."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.deps import ReadSession, Today
from app.api.fit_answers import fit_out
from app.api.fit_schemas import FitOut
from app.recommend import FitSearch, recommend

router = APIRouter(tags=["fit"])


@router.get("/fit")
def fit_resources(search: Annotated[FitSearch, Query()], session: ReadSession, today: Today) -> FitOut:
    """Say which sizes meet the needs and what they cost; nothing fits: an empty list and the nearest misses."""
    return fit_out(recommend(session, search, today=today), rejected="rejected" in search.include)

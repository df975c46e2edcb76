"""JOIN: the one use case that needs both the catalog and the arithmetic: which sizes fit, and what they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.projections import PURCHASE_MODELS
from app.catalog.queries.candidates import candidates_query, to_dicts
from app.catalog.queries.fit_params import FitSearch
from app.catalog.queries.pagination import ensure_same_revision, offset_of, read_cursor, write_cursor
from app.catalog.queries.params import ORDERABLE_STATUSES, SizeRequirements
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import QueryPlan, run_plan
from app.fit.resources import QUANTITIES, ResourceNeeds, rank_sizes
from app.fit.verdict import Option, Ranking
from app.fit.vm import Vm

_AMOUNTS = tuple(quantity.name for quantity in QUANTITIES)
TRAITS = tuple(name for name in SizeRequirements.model_fields if name not in _AMOUNTS)
"""What a VM has or is, and is not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFit:
    """An answer: the ranking, what was needed, and the page of options that was asked for."""

    needs: ResourceNeeds
    ranking: Ranking[Option]
    page: tuple[Option, ...]
    next_cursor: str | None


def fit_resources(session: Session, search: FitSearch, *, today: date) -> ResourceFit:
    """Judge every size that is asked about, and wait for it; raises BadQuestion for a region, series or cursor."""
    return run_plan(session, plan_resource_fit(search, load_snapshot(session), today))


def plan_resource_fit(
    search: FitSearch,
    known: CatalogSnapshot,
    today: date,
    *,
    verified_only: bool = False,
    priced_on: date | None = None,
) -> QueryPlan[ResourceFit]:
    """Judge every size that is asked about, from one query."""
    search = normalize(search, known)
    needs = replace(to_needs(search, today), verified_only=verified_only)
    asked = candidates_query(search, TRAITS, today=today, priced_on=priced_on)
    rows = yield asked
    ranking = rank_sizes([to_vm(row) for row in to_dicts(asked, rows)], needs, search.sort)
    question = f"{search.model_dump_json(exclude=search.page_param_names())} {today}"
    place = read_cursor(search.cursor, question, 1) if search.cursor else None
    start = offset_of(place, search.cursor)
    revision = known.revision if place is None else (yield from ensure_same_revision(place))
    end = start + search.limit
    following = write_cursor(question, revision, [end]) if end < len(ranking.options) else None
    return ResourceFit(needs=needs, ranking=ranking, page=ranking.options[start:end], next_cursor=following)


def to_needs(search: FitSearch, today: date) -> ResourceNeeds:
    """Take from the question what the arithmetic needs."""
    asked = search.status or ORDERABLE_STATUSES
    statuses = (*ORDERABLE_STATUSES, "withdrawn", "retired") if "any" in asked else asked
    return ResourceNeeds(
        amounts={name: value for name in _AMOUNTS if (value := getattr(search, name)) is not None},
        traits={name: value for name in TRAITS if (value := getattr(search, name)) is not None},
        statuses=frozenset(statuses),
        regions=search.region,
        max_nodes=search.max_nodes,
        purchase=search.purchase,
        hours=search.hours,
        hours_per_month=search.hours_per_month,
        budget_usd_per_month=search.budget_usd_per_month,
        today=today,
    )


def to_vm(row: Mapping[str, Any]) -> Vm:
    """Take from a row what fit sees of a size."""
    parts = (row["gpu_count_numerator"], row["gpu_count_denominator"])
    return Vm(
        name=row["name"],
        status=row["status"],
        verified=row["verified"],
        gpus=Fraction(*parts) if None not in parts else None,
        gpu_memory_gib=row["gpu_memory_gib"],
        gpu_memory_gib_on_one_gpu=row["gpu_memory_gib_on_one_gpu"],
        vcpus=row["vcpus"],
        memory_gib=row["memory_gib"],
        local_disk_gib=row["local_disk_gib"],
        network_gbps=row["network_mbps"] / 1000 if row["network_mbps"] is not None else None,
        infiniband_gbps=row["infiniband_gbps"],
        traits={name: row[name] for name in TRAITS},
        region=row["region"],
        in_every_region=bool(row["in_every_region"]),
        usd_per_hour={name: row[f"{name}_usd_per_hour"] for name in PURCHASE_MODELS},
        as_of={name: row[f"{name}_as_of"] for name in PURCHASE_MODELS},
        approximate_date={name: row[f"{name}_approximate_date"] for name in PURCHASE_MODELS},
    )

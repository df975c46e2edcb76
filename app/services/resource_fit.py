"""Which sizes meet given amounts of GPU memory, vCPUs and so on, on how many nodes, and what they cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.queries.candidates import candidates_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.params import ORDERABLE_STATUSES, FitSearch, SizeRequirements, check_days
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import QueryPlan, run_plan
from app.fit.resources import QUANTITIES, ResourceNeeds, rank_sizes
from app.fit.verdict import Option, Ranking
from app.fit.vm import Vm
from app.services.ranked import paginate, to_fraction, to_vm

_AMOUNTS = tuple(quantity.name for quantity in QUANTITIES)
TRAITS = tuple(name for name in SizeRequirements.model_fields if name not in _AMOUNTS)
"""Requirements that a VM meets or not, whatever the number of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFit:
    """The needs as evaluated, the ranking of all sizes, and one page of the options that fit.

    `exchange_rate` is that of an answer that has its costs in another currency, too.
    """

    needs: ResourceNeeds
    ranking: Ranking[Option]
    page: Sequence[Option]
    next_cursor: str | None
    exchange_rate: CurrencyRate | None


def fit_resources(session: Session, search: FitSearch, *, today: date) -> ResourceFit:
    """Evaluate and rank sizes in this session; raises BadQuery for an unknown region or series, or a bad cursor."""
    return run_plan(session, plan_resource_fit(search, load_snapshot(session), today))


def plan_resource_fit(
    search: FitSearch,
    known: CatalogSnapshot,
    today: date,
    *,
    purchases: Collection[str] | None = None,
    verified_only: bool = False,
) -> QueryPlan[ResourceFit]:
    """Evaluate and rank the selected sizes with one catalog query.

    `purchases` are the purchase models to price: by default on demand, spot and that of the search.
    """
    check_days(search, today)
    search = normalize(search, known)
    rate = yield from find_exchange_rate(search.currency, search.as_of or today)
    needs = replace(to_needs(search, today), verified_only=verified_only)
    priced = ("on_demand", "spot", search.purchase) if purchases is None else purchases
    query = candidates_query(search, priced, TRAITS, today=today, rules=known.rules)
    vms = yield from known.keep_list(query, lambda rows: [_to_vm(row) for row in rows])
    ranking = rank_sizes(vms, needs, search.sort)
    request_key = f"{search.model_dump_json(exclude=search.page_param_names())} {today}"
    page = yield from paginate(ranking.options, search, request_key, known)
    return ResourceFit(needs=needs, ranking=ranking, page=page.items, next_cursor=page.next_cursor, exchange_rate=rate)


def to_needs(search: FitSearch, today: date) -> ResourceNeeds:
    """Map search parameters to what the evaluation requires of every size."""
    requested = search.status or ORDERABLE_STATUSES
    statuses = (*ORDERABLE_STATUSES, "withdrawn", "retired") if "any" in requested else requested
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


def _to_vm(row: Mapping[str, Any]) -> Vm:
    return to_vm(
        row,
        gpus=to_fraction(row["gpu_count_numerator"], row["gpu_count_denominator"]),
        gpu_memory_gib_on_one_gpu=row["gpu_memory_gib_on_one_gpu"],
        vcpus=row["vcpus"],
        memory_gib=row["memory_gib"],
        local_disk_gib=row["local_disk_gib"],
        network_gbps=row["network_mbps"] / 1000 if row["network_mbps"] is not None else None,
        infiniband_gbps=row["infiniband_gbps"],
        traits={name: row[name] for name in TRAITS},
    )

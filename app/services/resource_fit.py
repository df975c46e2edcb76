"""Which sizes meet given amounts of GPU memory, vCPUs and so on, on how many nodes, and what they cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from app.catalog.queries.candidates import candidates_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.params import ORDERABLE_STATUSES, FitSearch, SizeRequirements, check_days
from app.catalog.queries.size_sets import SizeQuestion
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import Catalog
from app.db.statements import to_dicts
from app.errors import CatalogChanged
from app.fit.resources import QUANTITIES, ResourceNeeds, evaluate_vm
from app.fit.verdict import MAX_REJECTED, NEAREST_MISSES, Option, Rejection
from app.fit.vm import Vm
from app.services.ranked import paginate, to_fraction, to_vm
from app.services.resource_ranking import rank_sizes

_AMOUNTS = tuple(quantity.name for quantity in QUANTITIES)
TRAITS = tuple(name for name in SizeRequirements.model_fields if name not in _AMOUNTS)
"""Requirements that a VM meets or not, whatever the number of nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFit:
    """The needs as evaluated, one page of the options that fit, and the sizes that do not, the nearest miss first.

    `total` and `rejected_total` count all sizes, `summary` the rejected ones by the code of their largest shortfall;
    `rejections` are all of them where they were asked for. `exchange_rate` is that of an answer that has its costs in
    another currency, too; `no_price` is there where no option has a price.
    """

    needs: ResourceNeeds
    total: int
    rejected_total: int
    summary: Mapping[str, int]
    nearest_misses: Sequence[Rejection]
    rejections: Sequence[Rejection]
    page: Sequence[Option]
    next_cursor: str | None
    exchange_rate: CurrencyRate | None
    no_price: NoPrice | None = None


def plan_resource_fit(
    catalog: Catalog,
    search: FitSearch,
    *,
    purchases: Collection[str] | None = None,
    verified_only: bool = False,
    rejected: bool = False,
    most_of_reason: int | None = None,
) -> ResourceFit:
    """Evaluate and rank the selected sizes.

    `purchases` are the purchase models to price: by default on demand, spot and that of the search. With `rejected` the
    result has the rejected sizes: at most MAX_REJECTED, and at most `most_of_reason` of each reason.
    """
    check_days(search, catalog.today)
    search = normalize(search, catalog.snapshot)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    needs = replace(to_needs(search, catalog.today), verified_only=verified_only)
    question = SizeQuestion(catalog, search)
    ranking = rank_sizes(question, needs, search.sort)
    request_key = (
        f"{search.model_dump_json(exclude=search.page_param_names())} {catalog.today} {purchases} {verified_only}"
    )
    page = paginate(catalog, ranking.options, search, request_key)
    misses = ranking.nearest(
        MAX_REJECTED if rejected else NEAREST_MISSES, most_of_code=most_of_reason if rejected else None
    )
    priced = tuple(("on_demand", "spot", search.purchase) if purchases is None else purchases)
    keys = [question.sets.keys[place] for place in (*page.items, *misses)]
    vms = _read_vms(catalog, keys, search, priced) if keys else []
    verdicts = [evaluate_vm(vm, needs) for vm in vms]
    options = [one for one in verdicts if isinstance(one, Option)]
    rejections = [one for one in verdicts if isinstance(one, Rejection)]
    costs = (option.costs.get(search.purchase) for option in options)
    has_price = bool(search.cursor) or any(cost is not None and cost.usd_per_hour is not None for cost in costs)
    return ResourceFit(
        needs=needs,
        total=len(ranking.options),
        rejected_total=len(ranking.rejections),
        summary=ranking.summary,
        nearest_misses=rejections[:NEAREST_MISSES],
        rejections=rejections if rejected else (),
        page=options,
        next_cursor=page.next_cursor,
        exchange_rate=rate,
        no_price=None if has_price else explain_no_price(catalog, search),
    )


def _read_vms(catalog: Catalog, keys: Sequence[str], search: FitSearch, purchases: Collection[str]) -> list[Vm]:
    """Read sizes with their prices; raises CatalogChanged."""
    query = candidates_query(search, purchases, TRAITS, today=catalog.today, rules=catalog.snapshot.rules, keys=keys)
    rows = {row["key"]: row for row in to_dicts(query, catalog.fetch(query))}
    if rows.keys() < set(keys):
        raise CatalogChanged
    return [_to_vm(rows[key]) for key in keys]


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

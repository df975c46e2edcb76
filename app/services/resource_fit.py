"""Which sizes meet given amounts of GPU memory, vCPUs and so on, on how many nodes, and what they cost."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.queries.candidates import candidates_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.pagination import current_revision
from app.catalog.queries.params import ORDERABLE_STATUSES, FitSearch, SizeRequirements, check_days
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import QueryPlan, run_plan, to_dicts
from app.fit.resources import QUANTITIES, ResourceNeeds, evaluate_vm, rank_sizes
from app.fit.verdict import MAX_REJECTED, NEAREST_MISSES, Option, Rejection
from app.fit.vm import Vm
from app.services.ranked import paginate, to_fraction, to_vm

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


def fit_resources(session: Session, search: FitSearch, *, today: date) -> ResourceFit:
    """Evaluate and rank sizes in this session; raises BadQuery for an unknown region or series, or a bad cursor."""
    rejected, known = "rejected" in search.include, load_snapshot(session)
    return run_plan(session, plan_resource_fit(search, known, today, rejected=rejected, on_columns=not known.small))


def plan_resource_fit(
    search: FitSearch,
    known: CatalogSnapshot,
    today: date,
    *,
    purchases: Collection[str] | None = None,
    verified_only: bool = False,
    rejected: bool = False,
    most_of_reason: int | None = None,
    on_columns: bool = False,
) -> QueryPlan[ResourceFit]:
    """Evaluate and rank the selected sizes.

    `purchases` are the purchase models to price: by default on demand, spot and that of the search. With `rejected` the
    result has all rejected sizes. `on_columns` is for a process that answers many searches of one revision: it ranks
    on columns that are kept, and reads only the sizes that are shown: of the rejected ones at most MAX_REJECTED, and
    `most_of_reason` of each reason.
    """
    check_days(search, today)
    search = normalize(search, known)
    rate = yield from find_exchange_rate(search.currency, search.as_of or today)
    needs = replace(to_needs(search, today), verified_only=verified_only)
    question = _Question(
        search=search,
        needs=needs,
        purchases=tuple(("on_demand", "spot", search.purchase) if purchases is None else purchases),
        request_key=f"{search.model_dump_json(exclude=search.page_param_names())} {today} {purchases} {verified_only}",
        exchange_rate=rate,
    )
    found = None
    if on_columns and not search.names_a_day:
        found = yield from _fit_on_columns(question, known, today, rejected=rejected, most_of_reason=most_of_reason)
    if found is None:
        found = yield from _fit_rows(question, known, today, rejected=rejected)
    costs = (option.costs.get(search.purchase) for option in found.page)
    if search.cursor or any(cost is not None and cost.usd_per_hour is not None for cost in costs):
        return found
    return replace(found, no_price=(yield from explain_no_price(search, known, today)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A normalized search with what follows from it."""

    search: FitSearch
    needs: ResourceNeeds
    purchases: tuple[str, ...]
    request_key: str
    exchange_rate: CurrencyRate | None


def _fit_rows(question: _Question, known: CatalogSnapshot, today: date, *, rejected: bool) -> QueryPlan[ResourceFit]:
    """Read every selected size and evaluate it."""
    search = question.search
    query = candidates_query(search, question.purchases, TRAITS, today=today, rules=known.rules)
    vms = yield from known.keep_list(query, lambda rows: [_to_vm(row) for row in rows])
    ranking = rank_sizes(vms, question.needs, search.sort)
    page = yield from paginate(ranking.options, search, question.request_key, known)
    return ResourceFit(
        needs=question.needs,
        total=len(ranking.options),
        rejected_total=len(ranking.rejections),
        summary=ranking.summary,
        nearest_misses=ranking.nearest_misses,
        rejections=ranking.rejections if rejected else (),
        page=page.items,
        next_cursor=page.next_cursor,
        exchange_rate=question.exchange_rate,
    )


def _fit_on_columns(
    question: _Question, known: CatalogSnapshot, today: date, *, rejected: bool, most_of_reason: int | None
) -> QueryPlan[ResourceFit | None]:
    """Rank on columns, and read and evaluate only the sizes that are shown; None where the catalog has changed since.

    The columns and the sizes are then of different revisions.
    """
    from app.services.resource_columns import rank_on_columns

    search, needs = question.search, question.needs
    ranking = yield from rank_on_columns(search, needs, known, today)
    page = yield from paginate(ranking.options, search, question.request_key, known)
    misses = ranking.rejections.nearest(
        MAX_REJECTED if rejected else NEAREST_MISSES, most_of_reason=most_of_reason if rejected else None
    )
    shown = [ranking.keys[position] for position in (*page.items, *misses)]
    verdicts: list[Option | Rejection] = []
    if shown:
        query = candidates_query(search, question.purchases, TRAITS, today=today, rules=known.rules, keys=shown)
        rows = {row["key"]: row for row in to_dicts(query, (yield query))}
        if (yield from current_revision()) != known.revision:
            return None
        verdicts = [evaluate_vm(_to_vm(rows[key]), needs) for key in shown]
    rejections = [one for one in verdicts if isinstance(one, Rejection)]
    return ResourceFit(
        needs=needs,
        total=len(ranking.options),
        rejected_total=len(ranking.rejections),
        summary=ranking.summary,
        nearest_misses=rejections[:NEAREST_MISSES],
        rejections=rejections if rejected else (),
        page=[one for one in verdicts if isinstance(one, Option)],
        next_cursor=page.next_cursor,
        exchange_rate=question.exchange_rate,
    )


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

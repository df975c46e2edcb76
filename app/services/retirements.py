"""Plan for retirements: the date for each line of an inventory, its source, and the sizes that can take its place.

However long the inventory, four statements read what is needed, three where the sizes are kept; each size is judged
once, each region priced once. Regions without any price of the requested purchase model take two or three more.
"""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from app.cancellation import stop_if_cancelled
from app.catalog.names import RegionCode, as_written, display_keys
from app.catalog.providers import split_provider
from app.catalog.purchases import Purchase
from app.catalog.queries.lookups import NEAREST_WINDOW, RegionPlace, explain_other_provider, suggest_regions
from app.catalog.queries.params import OfferParams
from app.catalog.queries.retirements import ALIASES, planned_sizes_query, prices_query
from app.catalog.queries.sizes import NoPrice, explain_no_price
from app.catalog.queries.snapshot import Catalog, computing
from app.db.statements import Reader, fetch
from app.fit.costs import HOURS_PER_MONTH, TERMS, paid_hours, round_product
from app.fit.features import ESSENTIAL_FEATURES, FEATURE_NAMES
from app.fit.successors import (
    LOCAL_DISK_FEATURES,
    Candidate,
    Differences,
    Market,
    Refusals,
    Shortcomings,
    candidate_failures,
    differences,
    features_to_give_up,
    find_shortcomings,
    find_successors,
    refuse_all,
    unknown_features,
)
from app.fit.verdict import ORDERABLE, AdjustedPrice, Failure
from app.nearest import did_you_mean, starting_with
from app.schemas.retirement_request import RetirementPlanIn, SuccessorNeedsIn
from app.schemas.retirements import (
    DueDateOut,
    GiveUpOut,
    ItemErrorOut,
    PlannedItemOut,
    PlanSummaryOut,
    RetirementPlanOut,
    SuccessorOut,
    VmCostOut,
)
from app.services.ranked import to_adjustment, to_gpus

MAX_SUGGESTED = 100
"""The most unknown names that get suggestions: comparing spellings is slow, and who has more has another problem."""
SUCCESSOR, NO_SUCCESSOR, NOT_NEEDED, UNKNOWN_NAME = "successor", "no_successor", "not_needed", "error"
"""The outcomes of an item."""
_ANNOUNCED = (
    *("status", "retirement_date", "source_id", "source_title", "source_kind", "source_url", "source_published_on"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryItem:
    """A number of VMs of a size in a region; `id` is the client's own, `purchase` what its list says of paying."""

    size: str
    region: str
    count: int = 1
    id: str | None = None
    purchase: str | None = None


class PriceInForce(NamedTuple):
    """A price in force, USD an hour, and the day from which it is known to hold."""

    usd_per_hour: Decimal
    as_of: date
    adjustment: AdjustedPrice | None


def plan_body(catalog: Catalog, body: RetirementPlanIn) -> RetirementPlanOut:
    """Plan for the inventory of a body."""
    items = [InventoryItem(**item.model_dump() | {"region": RegionCode(item.region)}) for item in body.items]
    return plan_retirements(catalog, items, body)


@computing
def plan_retirements(catalog: Catalog, items: Sequence[InventoryItem], needs: SuccessorNeedsIn) -> RetirementPlanOut:
    """Plan for an inventory of any length; a size or a region that the catalog lacks is an error of its item only.

    Of equal lines the first lists all successors, the others the best.
    """
    regions = tuple(sorted({item.region for item in items if item.region in catalog.snapshot.regions}))
    planner = _Planner(catalog, needs, regions)
    first: dict[tuple[str, str, int], PlannedItemOut] = {}
    planned = []
    for index, item in enumerate(items):
        stop_if_cancelled()
        line = item.size, as_written(item.region), item.count
        if (same := first.get(line)) is None:
            planned.append(first.setdefault(line, planner.plan(index, item)))
        else:
            own = {"index": index, "id": item.id, "same_as": same.index}
            planned.append(same.model_copy(update=own | {"successors": same.successors[:1]}))
    return RetirementPlanOut(
        today=catalog.today,
        keep=list(needs.keep),
        summary=_summarize(planned),
        items=planned,
        no_price=planner.no_price,
    )


def _summarize(items: Iterable[PlannedItemOut]) -> PlanSummaryOut:
    """Count a plan by outcome and date, and add up the cost of moving to the best successors."""
    outcomes = dict.fromkeys((SUCCESSOR, NO_SUCCESSOR, NOT_NEEDED, UNKNOWN_NAME), 0)
    due: dict[date | None, DueDateOut] = {}
    now, then = [], []
    for item in items:
        outcomes[item.outcome] += 1
        if item.outcome in (SUCCESSOR, NO_SUCCESSOR):
            day = item.retirement_date
            of_day = due.setdefault(day, DueDateOut(retirement_date=day, items=0, vms=0, without_successor=0))
            of_day.items += 1
            of_day.vms += item.count
            of_day.without_successor += item.outcome == NO_SUCCESSOR
        if item.successors and item.cost is not None:
            now.append(item.cost)
            then.append(item.successors[0].cost)
    in_all = _add_up(then)
    return PlanSummaryOut(
        outcomes=outcomes,
        by_date=[due[day] for day in sorted(due, key=lambda day: (day is None, day or date.max))],
        now=_add_up(now),
        then=in_all,
        change=_add_up([in_all, *(_negative(cost) for cost in now)]),
        priced=len(now),
        unpriced=outcomes[SUCCESSOR] - len(now),
    )


def _add_up(costs: Sequence[VmCostOut]) -> VmCostOut:
    return VmCostOut(
        usd_per_hour=sum((cost.usd_per_hour for cost in costs), Decimal(0)),
        usd_per_month=sum((cost.usd_per_month for cost in costs), Decimal(0)),
        committed_hours_per_month=max((cost.committed_hours_per_month or 0 for cost in costs), default=0) or None,
    )


def _negative(cost: VmCostOut) -> VmCostOut:
    return cost.model_copy(update={"usd_per_hour": -cost.usd_per_hour, "usd_per_month": -cost.usd_per_month})


RegionPrices = dict[str, dict[str, PriceInForce]]
"""Prices by the code of the region and the key of the size."""


def _find_prices(
    catalog: Catalog, needs: SuccessorNeedsIn, regions: tuple[str, ...]
) -> tuple[RegionPrices, Mapping[str, Purchase], NoPrice | None]:
    """Find the prices in some regions, the purchase model of each region, and why that is not the requested one.

    A region in which no price of the requested model is known has those of on demand.
    """
    asked = OfferParams(os=needs.os, purchase=needs.purchase).model_copy(update={"region": regions})  # any number
    prices = _read_prices(catalog, asked)
    unpriced = tuple(region for region in regions if not prices[region])
    if not unpriced:
        return prices, {}, None
    unknown = asked.model_copy(update={"region": unpriced})
    note = explain_no_price(catalog, unknown)
    on_demand = _read_prices(catalog, unknown.model_copy(update={"purchase": "on_demand"}))
    instead: dict[str, Purchase] = {region: "on_demand" for region in unpriced if on_demand[region]}
    if note is not None and instead and needs.purchase != "on_demand":
        note = replace(note, detail=f"{note.detail}; costs there are those of on_demand")
    return prices | on_demand, instead, note


def _read_prices(reader: Reader, params: OfferParams) -> RegionPrices:
    prices: RegionPrices = {region: {} for region in params.region}
    if params.region:
        for region, key, usd, as_of, adjustment in fetch(reader, prices_query(params)):
            prices[region][key] = PriceInForce(usd, as_of, to_adjustment(adjustment))
    return prices


class _Answer(NamedTuple):
    """What is the same for all items of one size in one region; costs are of one VM."""

    unknown: list[str]
    successors: Sequence[tuple[Candidate, Differences, PriceInForce]]
    refusals: Refusals
    fixes: list[GiveUpOut]


_NO_ANSWER = _Answer([], (), Refusals({}, ()), [])
"""Of what needs no successor."""


class _Planner:
    """Answers items from what it reads; every size and every pair of size and region is worked out once.

    `no_price` says where prices are not those of the requested purchase model.
    """

    def __init__(self, catalog: Catalog, needs: SuccessorNeedsIn, regions: tuple[str, ...]) -> None:
        sizes = load_sizes(catalog)
        self._machines = {machine.key: machine for _, machine in sizes}
        self._prices, self._purchases, self.no_price = _find_prices(catalog, needs, regions)
        self._names, self._needs, self._today = Names.of(catalog, sizes), needs, catalog.today
        self._facts = self._names.sizes
        self._orderable = [machine for machine in self._machines.values() if machine.status in ORDERABLE]
        not_before = catalog.today + timedelta(days=needs.successor_days)
        self._failures = {size.key: tuple(candidate_failures(size, not_before)) for size in self._orderable}
        self._candidates = [machine for machine in self._orderable if not self._failures[machine.key]]
        self._markets: dict[str, Market] = {}
        self._shortcomings: dict[str, Shortcomings] = {}
        self._answers: dict[tuple[str, str], _Answer] = {}

    def plan(self, index: int, item: InventoryItem) -> PlannedItemOut:
        """Answer one item."""
        key = self._names.find_key(item.size)
        errors = self._names.errors(item.size, key, item.region)
        facts = self._facts[key] if key is not None else {}
        retires = facts.get("retirement_date")
        price: PriceInForce | None = None
        answer, outcome = _NO_ANSWER, UNKNOWN_NAME
        if key is not None and not errors:
            price, outcome = self._prices[item.region].get(key), NOT_NEEDED
            if self._is_due(facts):
                answer = self._answer(self._machines[key], item.region)
                outcome = SUCCESSOR if answer.successors else NO_SUCCESSOR
        return PlannedItemOut(
            index=index,
            same_as=None,
            id=item.id,
            size=facts.get("name", item.size),
            region=str(item.region) if item.region in self._names.regions else as_written(item.region),
            count=item.count,
            outcome=outcome,
            **{name: facts.get(name) for name in _ANNOUNCED},
            days_left=(retires - self._today).days if retires is not None else None,
            unknown=answer.unknown,
            usd_per_hour=price.usd_per_hour if price is not None else None,
            price_as_of=price.as_of if price is not None else None,
            purchase=self._purchase(item.region),
            adjustment=price.adjustment if price is not None else None,
            cost=self._cost(price.usd_per_hour, item.count, item.region) if price is not None else None,
            successors=[self._successor(*successor, price, item) for successor in answer.successors],
            rejection_summary=dict(answer.refusals.summary),
            nearest_misses=answer.refusals.nearest,
            fixes=answer.fixes,
            errors=errors,
        )

    def _is_due(self, facts: Mapping[str, Any]) -> bool:
        """Return whether a size needs a successor: it was withdrawn, or retires before the horizon."""
        retires, before = facts["retirement_date"], self._needs.before
        if retires is None:
            return bool(facts["status"] == "withdrawn")
        return before is None or retires < before

    def _successor(
        self, size: Candidate, changes: Differences, price: PriceInForce, old: PriceInForce | None, item: InventoryItem
    ) -> SuccessorOut:
        facts = self._facts[size.key]
        gpus = to_gpus(facts["gpu_count_numerator"], facts["gpu_count_denominator"])
        return SuccessorOut(
            **{name: facts[name] for name in ("series", "vcpus", "memory_gib", "gpu_model")},
            size=facts["name"],
            gpu_count=round(float(gpus), 4) if gpus is not None else None,
            gpu_fraction=str(gpus) if gpus is not None and gpus.denominator > 1 else None,
            status=size.status,
            retirement_date=size.retirement_date,
            **changes._asdict(),
            usd_per_hour=price.usd_per_hour,
            price_as_of=price.as_of,
            adjustment=price.adjustment,
            cost=self._cost(price.usd_per_hour, item.count, item.region),
            change=self._cost(price.usd_per_hour - old.usd_per_hour, item.count, item.region) if old else None,
        )

    def _answer(self, old: Candidate, region: str) -> _Answer:
        if (cached := self._answers.get((old.key, region))) is not None:
            return cached
        keep, prices = self._needs.keep, self._prices[region]
        waivable = LOCAL_DISK_FEATURES if keep == ESSENTIAL_FEATURES else ()  # who names others wants just these
        bought = f"{self._purchase(region).replace('_', '-')} {self._needs.os.capitalize()} price"
        unpriced = Failure("region", "NOT_IN_REGION", f"has no {bought} in {region}")
        best = find_successors(old, self._market(region), keep, self._needs.max_successors, waivable)
        answer = self._answers[old.key, region] = _Answer(
            unknown=list(unknown_features(old, keep)),
            successors=[(machine, differences(old, machine), prices[machine.key]) for machine in best],
            refusals=Refusals({}, ()) if best else refuse_all(self._shortcomings_of(old), prices, unpriced),
            fixes=[] if best else list(self._fixes(old, region)),
        )
        return answer

    def _market(self, region: str) -> Market:
        if (market := self._markets.get(region)) is None:
            usd_per_hour = {key: price.usd_per_hour for key, price in self._prices[region].items()}
            market = self._markets[region] = Market(self._candidates, usd_per_hour)
        return market

    def _shortcomings_of(self, old: Candidate) -> Shortcomings:
        if (missing := self._shortcomings.get(old.key)) is None:
            missing = find_shortcomings(old, self._orderable, self._needs.keep, self._failures)
            self._shortcomings[old.key] = missing
        return missing

    def _purchase(self, region: str) -> Purchase:
        return self._purchases.get(region, self._needs.purchase)

    def _fixes(self, old: Candidate, region: str) -> Iterable[GiveUpOut]:
        """Yield the features to give up; each is tried before it is said."""
        keep, market = self._needs.keep, self._market(region)
        for names in features_to_give_up(self._shortcomings_of(old), market.usd_per_hour):
            kept = [name for name in keep if name not in names]
            for machine in find_successors(old, market, kept, 1):
                price = self._prices[region][machine.key]
                paid = {"usd_per_hour": price.usd_per_hour, "adjustment": price.adjustment}
                yield GiveUpOut(give_up=list(names), size=machine.name, **paid)

    def _cost(self, usd_per_hour: Decimal, count: int, region: str) -> VmCostOut:
        hourly, purchase = count * usd_per_hour, self._purchase(region)
        return VmCostOut(
            usd_per_hour=hourly,
            usd_per_month=round_product(hourly, paid_hours(purchase, self._needs.hours_per_month)),
            committed_hours_per_month=HOURS_PER_MONTH if purchase in TERMS else None,
        )


def load_sizes(catalog: Catalog) -> list[tuple[Mapping[str, Any], Candidate]]:
    """Return every size with what is compared of it; the list must not be changed."""
    return catalog.keep_list(planned_sizes_query(catalog.today), lambda rows: [(row, to_machine(row)) for row in rows])


@dataclass(frozen=True, slots=True)
class Names:
    """The names that the sizes and regions of a long list may have; `sizes` are by their keys, in order."""

    sizes: Mapping[str, Mapping[str, Any]]
    aliases: Mapping[str, str]
    regions: Mapping[str, RegionPlace]
    _keys: Sequence[str]
    _errors: dict[tuple[str, str], ItemErrorOut] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog, sizes: Iterable[tuple[Mapping[str, Any], Candidate]]) -> "Names":
        """Return the names of a catalog, whose sizes `load_sizes` returns."""
        facts = {row["key"]: row for row, _ in sizes}
        return cls(facts, dict(catalog.fetch(ALIASES)), catalog.snapshot.regions, sorted(facts))

    def find_key(self, name: str) -> str | None:
        """Return the key of a size by its name or an alias; a size's own name wins over the alias of another."""
        provider, bare = split_provider(name)
        *others, itself = (key if key in self.sizes else self.aliases.get(key) for key in display_keys(bare))
        keys = {itself} if itself is not None else {key for key in others if key is not None}
        key = keys.pop() if len(keys) == 1 else None
        return None if key is None or (provider and self.sizes[key]["provider"] != provider.id) else key

    def errors(self, size: str, key: str | None, region: str) -> list[ItemErrorOut]:
        """Return what is wrong with the size of an item, whose key it is, and with its region."""
        errors = [self._unknown("size", size)] if key is None else []
        if region not in self.regions:
            errors.append(self._unknown("region", region))
        elif key is not None:
            row = self.sizes[key]
            if detail := explain_other_provider(row["name"], row["provider"], region, self.regions):
                errors.append(ItemErrorOut(field="region", code="OTHER_PROVIDER", detail=f"{detail}.", suggestions=[]))
        return errors

    def _unknown(self, field: str, name: str) -> ItemErrorOut:
        """Return the error for a size or a region that the catalog does not have, with the nearest names."""
        if (error := self._errors.get((field, name))) is None:
            near = self._suggest(field, name) if len(self._errors) < MAX_SUGGESTED else ()
            written = as_written(name)
            hint = did_you_mean(near).replace("did", "Did", 1)
            detail = " ".join(filter(None, (f"There is no {field} named {written!r}.", hint)))
            error = ItemErrorOut(field=field, code=f"UNKNOWN_{field.upper()}", detail=detail, suggestions=near)
            self._errors[field, name] = error
        return error

    def _suggest(self, field: str, name: str) -> tuple[str, ...]:
        """Return the nearest names; of sizes only those near it in the alphabet are compared, as in every lookup."""
        if field == "region":
            return tuple(suggest_regions(name, self.regions))
        key = display_keys(name)[0]
        at = bisect(self._keys, key)
        around = self._keys[max(0, at - NEAREST_WINDOW) : at + NEAREST_WINDOW]
        return tuple(self.sizes[near]["name"] for near in starting_with(key, around, 2))


def to_machine(row: Mapping[str, Any]) -> Candidate:
    """Map a row of the catalog to what is compared; `generation` has the VM generations that are supported."""
    first, second, disk = row["generation_1"], row["generation_2"], row["local_disk_gib"]
    generations = frozenset(name for name, has in (("1", first), ("2", second)) if has)
    computed = {
        "generation": generations or None,
        "local_disk": None if disk is None else disk > 0,
        "cpu_model": frozenset(row["cpu_model"].split(" or ")) if row["cpu_model"] else None,
        "disk_controller": frozenset(row["disk_controller"].split(", ")) if row["disk_controller"] else None,
    }
    return Candidate(
        key=row["key"],
        name=row["name"],
        status=row["status"],
        verified=row["verified"],
        provider=row["provider"],
        retirement_date=row["retirement_date"],
        family=row["family"],
        category=row["category"],
        values=tuple(computed[name] if name in computed else row[name] for name in FEATURE_NAMES),
    )


def to_plan_rows(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert the items of a plan's JSON to flat rows, each with its best successor and the names of the others."""
    return [
        _to_row(item, items[item["index"] if item["same_as"] is None else item["same_as"]]["successors"])
        for item in items
    ]


def _to_row(item: Mapping[str, Any], successors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    best = next(iter(successors), None)
    change = best.get("change") if best else None
    plain = ("id", "size", "region", "count", "status", "retirement_date", "days_left", "source_url", "outcome")
    adjusted = {
        f"{name}adjustment": size["adjustment"]
        for name, size in (("", item), ("successor_", best))
        if size and "adjustment" in size
    }
    return {name: item[name] for name in plain} | {
        "usd_per_hour": item["usd_per_hour"],
        "successor": best["size"] if best else None,
        "successor_usd_per_hour": best["usd_per_hour"] if best else None,
        "change_usd_per_hour": change["usd_per_hour"] if change else None,
        "change_usd_per_month": change["usd_per_month"] if change else None,
        "gained": [difference["detail"] for difference in best["gained"]] if best else [],
        "lost": [difference["detail"] for difference in best["lost"]] if best else [],
        "other_successors": [successor["size"] for successor in successors[1:]],
        "unknown": item["unknown"],
        "give_up": [" ".join(fix["give_up"]) for fix in item["fixes"]],
        "errors": [error["detail"] for error in item["errors"]],
        "purchase": item["purchase"],
        **adjusted,
    }

"""Plan for retirements: the date for each line of an inventory, its source, and the sizes that can take its place.

However long the inventory, four statements read what is needed, three where the sizes are kept; each size is judged
once, each region priced once. Regions without any price of the requested purchase model take two or three more.
"""

from bisect import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from app.catalog.names import as_written, display_keys
from app.catalog.providers import split_provider
from app.catalog.purchases import Purchase
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.lookups import NEAREST_WINDOW
from app.catalog.queries.params import OfferParams
from app.catalog.queries.snapshot import Catalog, computing
from app.catalog.queries.successors import aliases_query, planned_sizes_query, prices_query
from app.catalog.regions import closest_regions
from app.db.statements import Reader, fetch
from app.fit.features import (
    ESSENTIAL_FEATURES,
    FEATURE_NAMES,
    Machine,
    Refusals,
    Shortcomings,
    candidate_failures,
    features_to_give_up,
    find_shortcomings,
    refuse_all,
    unknown_features,
)
from app.fit.successors import LOCAL_DISK_FEATURES, Differences, Market, Match, differences, find_successors
from app.fit.verdict import Failure, plain_failure
from app.fit.vm import ORDERABLE
from app.nearest import did_you_mean, starting_with
from app.schemas.retirements import ItemErrorOut, VmCostOut
from app.services.retirement_plan import (
    NO_SUCCESSOR,
    NOT_NEEDED,
    SUCCESSOR,
    UNKNOWN_NAME,
    Fix,
    InventoryItem,
    PlannedItem,
    Price,
    RetirementPlan,
    RetirementRequest,
    Successor,
)

MAX_SUGGESTED = 100
"""So many unknown names get suggestions: comparing spellings is slow, and who has more of them has another problem."""


@computing
def plan_retirements(catalog: Catalog, request: RetirementRequest) -> RetirementPlan:
    """Plan for an inventory; a size or a region that the catalog lacks is an error of its item only."""
    sizes = catalog.keep_list(planned_sizes_query(catalog.today), _with_machines)
    aliases: dict[str, str] = dict(catalog.fetch(aliases_query()))
    regions = tuple(sorted({item.region for item in request.items if item.region in catalog.snapshot.regions}))
    prices, purchases, note = _find_prices(catalog, request, regions)
    planner = _Planner(
        request=request,
        facts={row["key"]: row for row, _ in sizes},
        machines={machine.key: machine for _, machine in sizes},
        aliases=aliases,
        prices=prices,
        purchases=purchases,
        regions=catalog.snapshot.regions,
        today=catalog.today,
    )
    items = tuple(planner.plan(index, item) for index, item in enumerate(request.items))
    return RetirementPlan(request=request, today=catalog.today, items=items, no_price=note)


RegionPrices = dict[str, dict[str, Price]]
"""Prices by the code of the region and the key of the size."""


def _find_prices(
    catalog: Catalog, request: RetirementRequest, regions: tuple[str, ...]
) -> tuple[RegionPrices, Mapping[str, Purchase], NoPrice | None]:
    """Find the prices in some regions, the purchase model of each region, and why that is not the requested one.

    A region in which no price of the requested model is known has those of on demand.
    """
    asked = OfferParams(os=request.os, purchase=request.purchase).model_copy(update={"region": regions})  # any number
    prices = _read_prices(catalog, asked)
    unpriced = tuple(region for region in regions if not prices[region])
    if not unpriced:
        return prices, {}, None
    unknown = asked.model_copy(update={"region": unpriced})
    note = explain_no_price(catalog, unknown)
    on_demand = _read_prices(catalog, unknown.model_copy(update={"purchase": "on_demand"}))
    instead: dict[str, Purchase] = {region: "on_demand" for region in unpriced if on_demand[region]}
    if note is not None and instead and request.purchase != "on_demand":
        note = replace(note, detail=f"{note.detail}; costs there are those of on_demand")
    return prices | on_demand, instead, note


def _read_prices(reader: Reader, params: OfferParams) -> RegionPrices:
    prices: RegionPrices = {region: {} for region in params.region}
    if params.region:
        for region, key, usd, as_of, adjustment in fetch(reader, prices_query(params)):
            prices[region][key] = Price(usd_per_hour=usd, as_of=as_of, adjustment=adjustment)
    return prices


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What is the same for all items of one size in one region; costs are of one VM."""

    unknown: tuple[str, ...]
    successors: tuple[tuple[Match, Differences, Price], ...]
    refusals: Refusals | None
    fixes: tuple[Fix, ...]


class _Planner:
    """Answers items from what was read; every size and every pair of size and region is worked out once."""

    def __init__(
        self,
        *,
        request: RetirementRequest,
        facts: Mapping[str, Mapping[str, Any]],
        machines: Mapping[str, Machine],
        aliases: Mapping[str, str],
        prices: Mapping[str, Mapping[str, Price]],
        purchases: Mapping[str, Purchase],
        regions: Collection[str],
        today: date,
    ) -> None:
        self._request, self._facts, self._aliases = request, facts, aliases
        self._prices, self._purchases, self._regions, self._today = prices, purchases, regions, today
        self._not_before = today + timedelta(days=request.successor_days)
        self._keys = sorted(facts)
        self._machines = machines
        self._orderable = [machine for machine in self._machines.values() if machine.status in ORDERABLE]
        self._failures = {one.key: tuple(candidate_failures(one, self._not_before)) for one in self._orderable}
        self._candidates = [machine for machine in self._orderable if not self._failures[machine.key]]
        self._markets: dict[str, Market] = {}
        self._shortcomings: dict[str, Shortcomings] = {}
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._errors: dict[tuple[str, str], ItemErrorOut] = {}

    def plan(self, index: int, item: InventoryItem) -> PlannedItem:
        """Answer one item."""
        key = self._find_key(item.size)
        errors = [] if key is not None else [self._unknown("size", item.size)]
        if item.region not in self._regions:
            errors.append(self._unknown("region", item.region))
        facts = self._facts[key] if key is not None else {}
        retires = facts.get("retirement_date")
        planned = PlannedItem(
            index=index,
            item=item,
            outcome=UNKNOWN_NAME if errors else NOT_NEEDED,
            purchase=self._purchase(item.region),
            facts=facts,
            days_left=(retires - self._today).days if retires is not None else None,
            errors=tuple(errors),
        )
        if errors or key is None:
            return planned
        price = self._prices[item.region].get(key)
        if price is not None:
            planned = replace(planned, price=price, cost=self._cost(price.usd_per_hour, item.count))
        return self._with_successors(planned, key) if self._is_due(facts) else planned

    def _is_due(self, facts: Mapping[str, Any]) -> bool:
        """Return whether a size needs a successor: it was withdrawn, or retires before the horizon."""
        retires, before = facts["retirement_date"], self._request.before
        if retires is None:
            return bool(facts["status"] == "withdrawn")
        return before is None or retires < before

    def _with_successors(self, planned: PlannedItem, key: str) -> PlannedItem:
        region, count = planned.item.region, planned.item.count
        answer = self._answers.get((key, region))
        if answer is None:
            answer = self._answers[key, region] = self._answer(self._machines[key], region)
        return replace(
            planned,
            outcome=SUCCESSOR if answer.successors else NO_SUCCESSOR,
            unknown=answer.unknown,
            successors=tuple(
                Successor(
                    match=match,
                    facts=self._facts[match.machine.key],
                    differences=changes,
                    price=price,
                    cost=self._cost(price.usd_per_hour, count),
                    change=self._change(planned.price, price, count),
                )
                for match, changes, price in answer.successors
            ),
            refusals=answer.refusals,
            fixes=answer.fixes,
        )

    def _answer(self, old: Machine, region: str) -> _Answer:
        keep, prices = self._request.keep, self._prices[region]
        waivable = LOCAL_DISK_FEATURES if keep == ESSENTIAL_FEATURES else ()  # who names others wants just these
        best = find_successors(old, self._market(region), keep, self._request.max_successors, waivable)
        return _Answer(
            unknown=unknown_features(old, keep),
            successors=tuple((match, differences(old, match.machine), prices[match.machine.key]) for match in best),
            refusals=None if best else refuse_all(self._shortcomings_of(old), prices, self._unpriced(region)),
            fixes=() if best else tuple(self._fixes(old, region)),
        )

    def _market(self, region: str) -> Market:
        market = self._markets.get(region)
        if market is None:
            usd_per_hour = {key: price.usd_per_hour for key, price in self._prices[region].items()}
            market = self._markets[region] = Market(self._candidates, usd_per_hour)
        return market

    def _shortcomings_of(self, old: Machine) -> Shortcomings:
        found = self._shortcomings.get(old.key)
        if found is None:
            found = find_shortcomings(old, self._orderable, self._request.keep, self._failures)
            self._shortcomings[old.key] = found
        return found

    def _unpriced(self, region: str) -> Failure:
        bought = f"{self._purchase(region).replace('_', '-')} {self._request.os.capitalize()} price"
        return plain_failure("region", "NOT_IN_REGION", f"has no {bought} in {region}")

    def _purchase(self, region: str) -> Purchase:
        return self._purchases.get(region, self._request.purchase)

    def _fixes(self, old: Machine, region: str) -> Iterable[Fix]:
        """Yield the features to give up; each is tried before it is said."""
        keep, market = self._request.keep, self._market(region)
        for names in features_to_give_up(self._shortcomings_of(old), market.usd_per_hour):
            kept = [name for name in keep if name not in names]
            for match in find_successors(old, market, kept, 1):
                price = self._prices[region][match.machine.key]
                yield Fix(give_up=names, size=match.machine.name, price=price)

    def _cost(self, usd_per_hour: Decimal, count: int) -> VmCostOut:
        hourly = count * usd_per_hour
        return VmCostOut(usd_per_hour=hourly, usd_per_month=hourly * self._request.hours_per_month)

    def _change(self, old: Price | None, new: Price, count: int) -> VmCostOut | None:
        return self._cost(new.usd_per_hour - old.usd_per_hour, count) if old is not None else None

    def _find_key(self, name: str) -> str | None:
        """Return the key of a size by its name or an alias; a size's own name wins over the alias of another."""
        provider, bare = split_provider(name)
        *others, itself = (key if key in self._facts else self._aliases.get(key) for key in display_keys(bare))
        keys = {itself} if itself is not None else {key for key in others if key is not None}
        key = keys.pop() if len(keys) == 1 else None
        return None if key is None or (provider and self._facts[key]["provider"] != provider.id) else key

    def _unknown(self, field: str, name: str) -> ItemErrorOut:
        error = self._errors.get((field, name))
        if error is None:
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
            return tuple(closest_regions(name, self._regions))
        key = display_keys(name)[0]
        at = bisect(self._keys, key)
        around = self._keys[max(0, at - NEAREST_WINDOW) : at + NEAREST_WINDOW]
        return tuple(self._facts[near]["name"] for near in starting_with(key, around, 2))


def _with_machines(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Machine]]:
    return [(row, to_machine(row)) for row in rows]


def to_machine(row: Mapping[str, Any]) -> Machine:
    """Map a row of the catalog to what is compared; `generation` has the VM generations that are supported."""
    one, two, disk = row["generation_1"], row["generation_2"], row["local_disk_gib"]
    generations = frozenset(name for name, has in (("1", one), ("2", two)) if has)
    computed = {
        "generation": generations or None,
        "local_disk": None if disk is None else disk > 0,
    }
    return Machine(
        key=row["key"],
        name=row["name"],
        status=row["status"],
        verified=row["verified"],
        retirement_date=row["retirement_date"],
        family=row["family"],
        category=row["category"],
        values=tuple(computed[name] if name in computed else row[name] for name in FEATURE_NAMES),
    )

"""Compares sizes field by field, and finds those that are similar to a given one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from typing import Any

from app.catalog.fields import GPU_FIELDS, SIZE_FIELDS
from app.catalog.names import as_written
from app.catalog.price_notes import adjustment_columns
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.candidates import neighbours_query
from app.catalog.queries.exchange_rates import CurrencyRate, convert_prices, converted_name, find_exchange_rate
from app.catalog.queries.lookups import check_regions, check_regions_of_sizes, get_size_keys, place_regions
from app.catalog.queries.params import CompareSearch, SimilarSearch, check_days
from app.catalog.queries.size_sets import IS_SET, SizeQuestion
from app.catalog.queries.sizes import GPU_FIGURES, SizeDetails, find_size_details
from app.catalog.queries.snapshot import Catalog
from app.db.statements import to_dicts
from app.errors import BadQuery, NotFound
from app.fit.costs import Number, to_exact
from app.fit.similarity import (
    DISTANCE_DIGITS,
    Neighbour,
    SizeTraits,
    TermDistance,
    difference,
    difference_percent,
    distance_parts,
    measure_distance,
    total_of_gpus,
    usd_per_unit,
)
from app.schemas.catalog import CellOut, ComparisonOut, LineOut, SimilarOut, SimilarPage, TermOut
from app.services.ranked import paginate, to_adjustment, to_gpus


def compare(catalog: Catalog, search: CompareSearch, *, foreign_regions: bool = False) -> ComparisonOut:
    """Compare the sizes of `search`.

    Raises BadQuery for a size that is unknown or named twice, a baseline that is none of them, a region or a day to
    come; and, unless `foreign_regions` are allowed, where no size is of the cloud of a region.
    """
    check_days(search, catalog.today)
    check_regions(catalog.snapshot.regions, "region", search.region)
    keys = _find_keys(catalog, "size", search.size)
    if not foreign_regions:
        check_regions_of_sizes(catalog, catalog.snapshot.regions, keys, search.region)
    search = place_regions(search, catalog.snapshot.regions)
    for index, key in enumerate(keys):
        if key in keys[:index]:
            first = as_written(search.size[keys.index(key)])
            raise BadQuery("size", as_written(search.size[index]), f"it is the same size as {first}; name it once")
    base = _find_keys(catalog, "baseline", (search.baseline,))[0] if search.baseline is not None else keys[0]
    if base not in keys:
        raise BadQuery("baseline", search.baseline, f"must be one of the sizes: {', '.join(search.size)}")
    details = find_size_details(catalog, keys, search)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    return side_by_side(details, keys.index(base), rate)


def side_by_side(
    details: tuple[SizeDetails, ...], baseline: int, exchange_rate: CurrencyRate | None = None
) -> ComparisonOut:
    """Compare sizes field by field: those of the size, then the totals of its GPUs, then prices per unit of these.

    Where rules changed the price of any, list prices stand behind the fields of the size, and where the price of any is
    computed, the formulas. With a rate all prices follow in its currency.
    """
    adjusted, computed = (any(name in size.row for size in details) for name in ("adjustment", "estimate"))
    columns = [
        {
            **{name: value for name, value in size.row.items() if name not in ("adjustment", "estimate")},
            **(adjustment_columns(size.row) if adjusted else {}),
            **({"estimate_formula": size.row.get("estimate", {}).get("formula")} if computed else {}),
            "gpu_count": size.gpus,
            **_total_figures(size),
            **_unit_prices(size),
            **(_converted_prices(size, exchange_rate) if exchange_rate is not None else {}),
        }
        for size in details
    ]
    names = tuple(str(column["name"]) for column in columns)
    units = dict(UNITS)
    if exchange_rate is not None:  # `EUR/h per GPU` for `USD/h per GPU`
        prices = {name: unit for name, unit in UNITS.items() if unit is not None and "usd_per" in name}
        units |= {converted_name(name): unit.replace("USD", exchange_rate.currency) for name, unit in prices.items()}
    lines = [
        _compare_field(field, units.get(field), names, [column[field] for column in columns], baseline)
        for field in columns[0]
        if field != "name"
    ]
    return ComparisonOut(baseline=names[baseline], sizes=names, fields=lines, exchange_rate=exchange_rate)


def _find_keys(catalog: Catalog, field: str, names: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return get_size_keys(catalog, names, catalog.snapshot.series)
    except NotFound as unknown:
        raise BadQuery(field, unknown.name, unknown.of_value("GET /sizes lists them")) from None


_GPU_UNITS = {name: GPU_FIELDS[name].unit for name in GPU_FIGURES}


def _total_figures(size: SizeDetails) -> dict[str, float | None]:
    return {f"gpus_{name}": total_of_gpus(size.gpus, size.gpu[name]) for name in GPU_FIGURES}


def _unit_price_name(name: str) -> str:
    """`usd_per_fp16_tflops_hour`; of bandwidth `usd_per_gb_per_s_hour`."""
    return f"usd_per_{name.removeprefix('memory_bandwidth_')}_hour"


def _unit_prices(size: SizeDetails) -> dict[str, float | None]:
    usd, together = size.row["usd_per_hour"], _total_figures(size)
    return {_unit_price_name(name): usd_per_unit(usd, together[f"gpus_{name}"]) for name in GPU_FIGURES}


def _converted_prices(size: SizeDetails, rate: CurrencyRate) -> dict[str, Decimal | None]:
    """Return every price of a size in the currency; those per unit from the price of the VM, so rounded once."""
    prices = {name: price for name, price in convert_prices(size.row, rate).items() if name != "currency"}
    usd, together = size.row["usd_per_hour"], _total_figures(size)
    for name in GPU_FIGURES:
        amount = together[f"gpus_{name}"]
        per_unit = to_exact(usd) / to_exact(amount) if usd is not None and amount else None
        prices[converted_name(_unit_price_name(name))] = rate.convert(per_unit) if per_unit is not None else None
    return prices


UNITS: dict[str, str | None] = {
    **{name: field.unit for name, field in SIZE_FIELDS.items()},
    **{f"gpus_{name}": unit for name, unit in _GPU_UNITS.items()},
    **{_unit_price_name(name): f"USD/h per {unit}" for name, unit in _GPU_UNITS.items()},
    **dict.fromkeys(("usd_per_hour", "list_usd_per_hour", "median_usd_per_hour"), "USD/h"),
    **dict.fromkeys((f"{purchase}_usd_per_hour" for purchase in PURCHASE_MODELS), "USD/h"),
    "price_age_days": "days",
    "usd_per_vcpu_hour": "USD/h per vCPU",
    "usd_per_1000_coremark_hour": "USD/h per 1,000 iterations/s",
    "usd_per_memory_gib_hour": "USD/h per GiB",
    "usd_per_gpu_hour": "USD/h per GPU",
    "usd_per_gpu_gib_hour": "USD/h per GiB",
}
"""The unit of each field that has one."""


def _compare_field(field: str, unit: str | None, names: tuple[str, ...], values: list[Any], baseline: int) -> LineOut:
    base = _amount(values[baseline])
    cells = [
        CellOut(
            size=name,
            value=_plain(value),
            difference=difference(base, _amount(value)),
            difference_percent=difference_percent(base, _amount(value)),
        )
        for name, value in zip(names, values, strict=True)
    ]
    stated = [value for value in values if value is not None]
    return LineOut(
        field=field,
        unit=unit,
        differs=any(value != stated[0] for value in stated),
        values=cells,
    )


def _amount(value: Any) -> Number | None:
    return value if isinstance(value, Number) and not isinstance(value, bool) else None


def _plain(value: Any) -> Any:
    """Convert to a JSON number; a fraction of a GPU has four digits, as in every list of sizes."""
    if isinstance(value, Fraction):
        return round(float(value), 4)
    return float(value) if isinstance(value, Decimal) else value


def find_similar(catalog: Catalog, name: str, search: SimilarSearch) -> SimilarPage:
    """Rank the sizes offered in the regions of `search` by similarity.

    Raises NotFound, or BadQuery for a region or a day to come.
    """
    check_days(search, catalog.today)
    check_regions(catalog.snapshot.regions, "region", search.region)
    search = place_regions(search, catalog.snapshot.regions, by_provider=bool(search.region))
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    query = neighbours_query((key,), search, catalog.today, catalog.snapshot.rules)
    (size,) = map(to_traits, to_dicts(query, catalog.fetch(query)))
    ranked = _rank_others(size, key, SizeQuestion(catalog, search), by_provider=bool(search.provider))
    request_key = f"{key} {search.model_dump_json(exclude=search.page_param_names())} {catalog.today}"
    keys, next_cursor = paginate(catalog, ranked, search, request_key)
    items: list[SimilarOut] = []
    if keys:
        query = neighbours_query(keys, search, catalog.today, catalog.snapshot.rules)
        traits = {row["key"]: to_traits(row) for row in to_dicts(query, catalog.fetch(query))}
        items = [_to_similar(measure_distance(size, traits[key])) for key in keys]
    return SimilarPage(size=size.name, items=items, next_cursor=next_cursor, total=len(ranked))


def _to_similar(neighbour: Neighbour) -> SimilarOut:
    size = neighbour.size
    return SimilarOut(
        size=size.name,
        distance=neighbour.distance,
        cheaper=neighbour.cheaper,
        bigger=neighbour.bigger,
        gpu_count=round(float(size.gpus), DISTANCE_DIGITS) if size.gpus is not None else None,
        gpu_fraction=str(size.gpus) if size.gpus is not None and size.gpus.denominator > 1 else None,
        **{name: getattr(size, name) for name in _SHOWN},
        terms=[_to_term(term) for term in neighbour.terms],
    )


_SHOWN = (
    *("provider", "status", "verified", "series", "gpu_model", "gpu_memory_gib", "vcpus", "memory_gib"),
    *("region", "usd_per_hour", "adjustment"),
)


def _to_term(measured: TermDistance) -> TermOut:
    baseline, value = (None if amount is None else float(amount) for amount in (measured.baseline, measured.value))
    return TermOut(
        term=measured.term.name,
        unit=measured.term.unit,
        wanted=baseline,
        value=value,
        difference=measured.difference,
        difference_percent=measured.difference_percent,
        weight=measured.term.weight,
        distance=measured.distance,
        contribution=measured.contribution,
        detail=measured.detail,
    )


_OF_CPU = ("arch", "cpu_vendor", "cpu_model", "vcpus", "memory_gib", "local_disk_gib", "uncached_disk_iops")


def _rank_others(size: SizeTraits, key: str, question: SizeQuestion, *, by_provider: bool) -> list[str]:
    """Return the keys of the other sizes that can be ordered, nearest first; equally near ones by price, then by name.

    Sizes with a GPU are compared with such sizes, and those without with those without.
    """
    sets, by_count = question.sets, question.sets_by_value("gpu_count")
    others = question.offered() & question.orderable() & ~(1 << sets.place_of(key))
    others &= by_count[0] if size.gpus == 0 else ~by_count.get(0, 0)
    if size.gpus:
        others &= ~by_count.get(None, 0)
    if by_provider:
        others &= question.meets("provider")
    flags = sets.flags(others)
    places = [place for place in question.order(("usd_per_hour", "name")) if flags[place] == IS_SET]

    of_class, of_values = distance_parts(size)
    parts: list[Iterable[float]] = [repeat(0.0, len(places))]  # all there is where no figure of the size is known
    if of_class is not None:
        gpus = list(zip(*map(question.values, ("gpu_id", "gpu_family", "gpu_vendor")), strict=True))
        parts.append(_map_different([gpus[place] for place in places], lambda gpu: of_class(*gpu)))
    for term, of_value in of_values:
        figures = question.figures(term.name)
        parts.append(_map_different([figures[place] for place in places], of_value))
    distances = [round(sum(of_size), DISTANCE_DIGITS) for of_size in zip(*parts, strict=True)]
    return [sets.keys[places[at]] for at in sorted(range(len(places)), key=distances.__getitem__)]


def _map_different(values: Sequence[Any], function: Callable[[Any], float]) -> Iterator[float]:
    """Map values, of which most are equal, and compute the function once for each different one."""
    return map({value: function(value) for value in set(values)}.__getitem__, values)


def to_traits(neighbour: Mapping[str, Any]) -> SizeTraits:
    """Map a row to the fields that similarity compares, and those that stand beside them."""
    return SizeTraits(
        name=neighbour["name"],
        provider=neighbour["provider"],
        status=neighbour["status"],
        verified=neighbour["verified"],
        series=neighbour["series_id"],
        **{name: neighbour[name] for name in ("gpu_id", "gpu_model", "gpu_family", "gpu_vendor", "gpu_memory_gib")},
        gpus=to_gpus(neighbour["gpu_count_numerator"], neighbour["gpu_count_denominator"]),
        **{name: neighbour[name] for name in (*_OF_CPU, "network_mbps", "region", "usd_per_hour")},
        adjustment=to_adjustment(neighbour["adjustment"]),
    )

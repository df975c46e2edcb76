"""Reads CSV files of regions, aliases, corrections, benchmarks, availability, adjustments, disks, rates and models."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from app.catalog.fields import FIELDS, MAX_INTEGER, parse_text, to_text
from app.catalog.in_force import BASIS_POINTS
from app.catalog.money import SIGNIFICANT_DIGITS, USD_DECIMALS, is_exact, to_nano_usd
from app.catalog.names import CONTINENTS, UNKNOWN_ZONES, RegionCode, region_key, size_key
from app.catalog.presets import Attention, Preset
from app.catalog.providers import provider_of_region
from app.catalog.purchases import DISK_TYPES, PRICED_PER, PURCHASE_MODELS, REDUNDANCIES, AdjustmentRule
from app.catalog.readings import (
    AdjustmentRow,
    AliasRow,
    AvailabilityRow,
    BenchmarkRow,
    CorrectionRow,
    DiskPriceRow,
    DiskRow,
    ExchangeRateRow,
    ModelRow,
    Reading,
    RegionRow,
    SourceRow,
    day_problem,
)
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.ingest.files import CsvRow, columns_of, read_rows
from app.ingest.sources.claims import WRITTEN, field_value, own_source, read_cited, reader_of
from app.nearest import did_you_mean, nearest
from app.validation import explain

REGION_COLUMNS = ("code", "name", "geography", "source")
PLACE_COLUMNS = ("place", "country", "continent", "latitude", "longitude")
"""The columns that a file of regions may have: where they are."""
_COUNTRY, _DEGREES = re.compile(r"[A-Z]{2}"), re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,6})?")


def to_region(row: CsvRow) -> RegionRow:
    """Map one row; the code is normalised, so that `West Europe` is read as `westeurope`."""
    code, provider = region_key(row.text("code")), provider_of_region(row.text("code"))
    if not provider.region_code.fullmatch(code):
        raise row.error("code", f"must be {provider.region_code_hint}")
    country, continent = row.cells.get("country"), row.cells.get("continent")
    if country and not _COUNTRY.fullmatch(country):
        raise row.error("country", "must be two capital letters (ISO 3166-1), such as DE")
    return RegionRow(
        code=code,
        name=row.text("name"),
        geography=row.optional("geography"),
        provider=provider.id,
        place=row.cells.get("place") or None,
        country=country or None,
        continent=row.choice("continent", CONTINENTS) if continent else None,
        latitude=_degrees(row, "latitude", 90),
        longitude=_degrees(row, "longitude", 180),
        **row.cited(),
    )


def _degrees(row: CsvRow, column: str, most: int) -> float | None:
    """Return the cell as degrees, north and east above zero; None where it is blank or there is no such column."""
    cell = row.cells.get(column)
    if not cell:
        return None
    if not _DEGREES.fullmatch(cell) or abs(Decimal(cell)) > most:
        raise row.error(column, f"must be degrees from -{most} to {most}, written like -33.87")
    return float(cell)


read_regions = reader_of("regions", REGION_COLUMNS, to_region, optional=PLACE_COLUMNS, once=("code",))

ALIAS_COLUMNS = ("alias", "size", "source", "reason")


def to_alias(row: CsvRow) -> AliasRow:
    """Map one row; a name cannot be an alias of itself."""
    alias, size = row.text("alias"), row.size_name("size")
    if size_key(alias) == size_key(size):
        raise row.error("alias", "is the same name as its size")
    return AliasRow(alias=alias, size=size, reason=row.text("reason"), **row.cited())


read_aliases = reader_of("aliases", ALIAS_COLUMNS, to_alias, once=("alias",))

BENCHMARK_COLUMNS = ("id", "series", "scope", "workload", "metric", "value", "unit", "comparison", "source")
SCOPES = ("gpu", "vm", "rack")


def to_benchmark(row: CsvRow) -> BenchmarkRow:
    """Map one row; `comparison` is what the result is measured against, if anything."""
    return BenchmarkRow(
        id=row.text("id"),
        series=row.text("series"),
        scope=row.choice("scope", SCOPES),
        workload=row.text("workload"),
        metric=row.text("metric"),
        value=row.positive("value"),
        unit=row.text("unit"),
        comparison=row.optional("comparison"),
        **row.cited(),
    )


read_benchmarks = reader_of("benchmarks", BENCHMARK_COLUMNS, to_benchmark, once=("id",))

CORRECTION_COLUMNS = ("kind", "subject", "field", "source", "value", "reason")


def read_corrections(path: Path, _sources: Mapping[str, SourceRow]) -> Reading:
    """Read the corrections; `source` is the id of the corrected source, which need not be in the list of sources.

    Raises BadData for a figure that is corrected twice, to two values.
    """
    first: dict[tuple[str, ...], CorrectionRow] = {}
    corrections = []
    for row in read_rows(path, CORRECTION_COLUMNS):
        entry = to_correction(row)
        subject = size_key(entry.subject) if entry.kind == "size" else entry.subject
        known = first.setdefault((entry.kind, subject, entry.field, entry.source), entry)
        if known.value != entry.value:
            raise row.error("value", f"line {known.line} corrects the same figure to {known.value!r}")
        corrections.append(entry)
    return Reading(corrections=tuple(corrections))


def to_correction(row: CsvRow) -> CorrectionRow:
    """Map one row; the value must be valid for the field."""
    kind = row.choice("kind", tuple(FIELDS))
    field = row.cells["field"]
    if field not in FIELDS[kind] and (near := nearest(field, FIELDS[kind])):
        raise row.error("field", f"is unknown; {did_you_mean(near)}")
    name, value = row.choice("field", tuple(FIELDS[kind])), row.text("value")
    try:
        parse_text(FIELDS[kind][name].kind, value)
    except ValueError as error:
        raise row.error("value", f"must be {WRITTEN[FIELDS[kind][name].kind]}") from error
    return CorrectionRow(
        kind=kind,
        subject=row.text("subject"),
        field=name,
        **row.cited(),
        value=to_text(field_value(row, "value", name, FIELDS[kind][name])),
        reason=row.text("reason"),
    )


# Availability: a row for each size, a column for each region, the zones in the cell

AVAILABILITY_COLUMNS = ("size", "source")
_ZONE = re.compile(r"[0-9]{1,3}|[a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,4}")
NO_ZONES = "-"
"""What a cell holds where a size is offered without a choice of zone; it is blank where the region lacks the size."""


def read_availability(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read in which regions and zones sizes are offered; all columns but AVAILABILITY_COLUMNS are regions.

    Raises BadData for a size that a source has twice with other zones in a region.
    """
    regions = [column for column in columns_of(path) if column not in AVAILABILITY_COLUMNS]
    rows, cited = read_cited(
        path, AVAILABILITY_COLUMNS, sources, partial(to_availability, regions=regions), optional=regions
    )
    availability = tuple(entry for entries in rows for entry in entries)
    first: dict[tuple[str, ...], AvailabilityRow] = {}
    for entry in availability:
        known = first.setdefault((size_key(entry.size), entry.region, entry.source), entry)
        if known.zones.split() != entry.zones.split():
            detail = f"{entry.size!r}: is listed twice: in line {known.line} its zones in {entry.region} are"
            raise entry.error("size", f"{detail} {known.zones or NO_ZONES}, here {entry.zones or NO_ZONES}")
    return Reading(sources=cited, availability=availability)


def to_availability(row: CsvRow, regions: list[str]) -> list[AvailabilityRow]:
    """Map one row to an entry for each region that has the size; zones are numbers or ids with spaces between."""
    offered = []
    for region in filter(row.cells.__getitem__, regions):
        zones = [] if row.cells[region] == NO_ZONES else row.cells[region].split()
        if zones != [UNKNOWN_ZONES] and not all(map(_ZONE.fullmatch, zones)):
            detail = f"or {NO_ZONES} for none, or {UNKNOWN_ZONES} for unknown ones"
            raise row.error(region, f"must be zones such as 1 2 3 or use1-az1, {detail}")
        place = AvailabilityRow(size=row.text("size"), region=region_key(region), zones=" ".join(zones), **row.cited())
        offered.append(place)
    return offered


ADJUSTMENT_COLUMNS = ("name",)
ADJUSTMENT_OPTIONAL = (
    *("size", "region", "os", "purchase"),
    *("discount_percent", "usd_per_hour", "valid_from", "valid_until"),
)

MAX_NAME_LENGTH = 100
MAX_MARKUP = 10
"""The most that all markups of a file together may multiply a price by."""

_PERCENT = re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,2})?")


def read_adjustments(path: Path, _sources: Mapping[str, SourceRow]) -> Reading:
    """Read the rules of a file, which is their source: `adjustments-contoso` for `contoso.csv`.

    Raises BadData for a rule that is not valid, and for a name that is used twice.
    """
    source = own_source(path, "adjustments", "Adjustments of prices")
    rows: list[AdjustmentRow] = []
    markup = Decimal(1)
    for row in read_rows(path, ADJUSTMENT_COLUMNS, optional=ADJUSTMENT_OPTIONAL):
        rule = to_rule(row)
        if any(rule.name == other.rule.name for other in rows):
            raise row.error("name", "is the name of an earlier rule")
        markup *= max(Decimal(1), 1 - Decimal(rule.discount_basis_points or 0) / BASIS_POINTS)
        if markup > MAX_MARKUP:
            raise row.error("discount_percent", f"with it all markups make a price more than {MAX_MARKUP} times higher")
        rows.append(
            AdjustmentRow(
                rule=rule,
                position=len(rows) + 1,
                size=row.cells.get("size"),
                source=source.id,
                file=row.file,
                line=row.line,
            )
        )
    return Reading(sources=(source,), adjustments=tuple(rows))


def to_rule(row: CsvRow) -> AdjustmentRule:
    """Map one row; a blank cell of what the rule is for means any."""
    cells = {name: row.cells.get(name, "") for name in ADJUSTMENT_OPTIONAL}
    discount, fixed = cells["discount_percent"], cells["usd_per_hour"]
    if discount and fixed:
        raise row.error("discount_percent", f"the rule has a usd_per_hour, too, {fixed}; leave one of the two blank")
    if not discount and not fixed:
        raise row.error("discount_percent", "a rule needs either a discount_percent or a usd_per_hour")
    name = row.text("name")
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise row.error("name", f"must have at most {MAX_NAME_LENGTH} characters, all of them printable")
    valid_from, valid_until = (row.optional_date(day) if cells[day] else None for day in ("valid_from", "valid_until"))
    if valid_from and valid_until and valid_until < valid_from:
        raise row.error("valid_until", f"must not be before valid_from, {valid_from}")
    return AdjustmentRule(
        name=name,
        size=size_key(cells["size"]) if cells["size"] else None,
        region=RegionCode(cells["region"]) if cells["region"] else None,
        os=row.choice("os", OPERATING_SYSTEMS) if cells["os"] else None,
        purchase=row.choice("purchase", PURCHASE_MODELS) if cells["purchase"] else None,
        discount_basis_points=_basis_points(row) if discount else None,
        nano_usd_per_hour=to_nano_usd(row.usd("usd_per_hour")) if fixed else None,
        valid_from=valid_from,
        valid_until=valid_until,
    )


def _basis_points(row: CsvRow) -> int:
    """Return a discount in hundredths of a percent; a negative one is a markup."""
    cell = row.cells["discount_percent"]
    if not _PERCENT.fullmatch(cell) or not -100 <= Decimal(cell) < 100 or not Decimal(cell):  # noqa: PLR2004
        detail = (
            "must be a percentage from -100 to below 100, not 0, with at most 2 decimals: 12.5; negative is a markup"
        )
        raise row.error("discount_percent", detail)
    return int(Decimal(cell) * 100)


DISK_COLUMNS = (
    *("id", "type", "redundancy", "size", "sku", "min_gib", "max_gib", "max_iops", "max_mbps"),
    *("burst_iops", "burst_mbps", "included_iops", "included_mbps", "iops_per_gib", "mbps_per_iops"),
    *("max_shares", "source"),
)
DISK_PRICE_COLUMNS = ("disk", "region", "per", "usd", "valid_from", "source")

_BILLED_BY_GIB = ("min_gib", "included_iops", "included_mbps", "iops_per_gib", "mbps_per_iops")
"""What a disk of any size must have, and one of a size must not."""
_INTEGERS = ("max_iops", "max_mbps", "burst_iops", "burst_mbps", "max_shares")


def to_disk(row: CsvRow) -> DiskRow:
    """Map one row; a disk has a `size`, or else the figures by which capacity and performance are billed."""
    size = row.optional("size")
    for column in _BILLED_BY_GIB:
        if bool(row.cells[column]) == bool(size):
            detail = "must be blank for a disk with a size" if size else "a disk without a size needs it"
            raise row.error(column, detail)
    columns = (*_INTEGERS, *_BILLED_BY_GIB[:-1])
    integers: dict[str, Any] = {
        name: row.integer(name, most=MAX_INTEGER) if row.cells[name] else None for name in columns
    }
    return DiskRow(
        id=row.text("id").lower(),
        type=row.choice("type", DISK_TYPES),
        redundancy=row.choice("redundancy", REDUNDANCIES),
        size=size,
        sku=row.text("sku"),
        max_gib=row.integer("max_gib", most=MAX_INTEGER),
        **integers,
        mbps_per_iops=row.positive("mbps_per_iops") if not size else None,
        **row.cited(),
    )


def to_disk_price(row: CsvRow) -> DiskPriceRow:
    """Map one row; a price that is not known is a missing row, never a zero."""
    return DiskPriceRow(
        disk=row.text("disk").lower(),
        region=region_key(row.text("region")),
        per=row.choice("per", PRICED_PER),
        usd=row.usd("usd"),
        valid_from=row.date("valid_from"),
        **row.cited(),
    )


read_disks = reader_of("disks", DISK_COLUMNS, to_disk, once=("id",))
read_disk_prices = reader_of(
    "disk_prices", DISK_PRICE_COLUMNS, to_disk_price, once=("disk", "region", "per", "valid_from", "source")
)


RATE_COLUMNS = ("day", "source")
"""The columns besides those of the currencies."""

CURRENCY = re.compile(r"[A-Z]{3}")
"""A currency by its code of ISO 4217."""

NO_RATE = frozenset(("", "N/A"))
"""What a cell says where there is no rate for the currency on the day."""


def read_exchange_rates(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read a table of rates, and the sources that publish them; raises BadData for a day that a source has twice."""
    days: set[tuple[str, date]] = set()

    def to_rates(row: CsvRow) -> tuple[ExchangeRateRow, ...]:
        day, source = row.date("day"), row.text("source")
        if problem := day_problem(day):
            raise row.error("day", problem)
        if (source, day) in days:
            raise row.error("day", "is listed twice")
        days.add((source, day))
        return tuple(rates_of_day(row, currencies, day, source))

    # What else is unknown is refused when the rows are read.
    currencies = [*dict.fromkeys(filter(CURRENCY.fullmatch, columns_of(path)))]
    rows, cited = read_cited(path, RATE_COLUMNS, sources, to_rates, optional=currencies)
    return Reading(sources=cited, exchange_rates=tuple(rate for rates in rows for rate in rates))


def rates_of_day(row: CsvRow, currencies: Iterable[str], day: date, source: str) -> Iterator[ExchangeRateRow]:
    """Yield the rates of a row, units per euro; raises BadData for one that is not above zero or too long to store."""
    for currency in currencies:
        if row.cells[currency] in NO_RATE:
            continue
        units = row.positive(currency)
        if not is_exact(units):
            limits = f"at most {USD_DECIMALS} decimals and {SIGNIFICANT_DIGITS} significant digits"
            raise row.error(currency, f"must be below a billion, with {limits}")
        yield ExchangeRateRow(
            currency=currency, day=day, units_per_euro=units, source=source, file=row.file, line=row.line
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition that every configuration must meet, and the field and detail to report where it does not."""

    field: str
    detail: str
    holds: Callable[[Preset], bool]


_KV_HEADS_RULES: dict[Attention, Callable[[int, int], bool]] = {
    "mha": lambda heads, shared: shared == heads,
    "gqa": lambda heads, shared: 1 < shared < heads,
    "mqa": lambda heads, shared: shared == 1 < heads,
    "mla": lambda heads, shared: shared == heads,
}


def _latent_widths_given(preset: Preset) -> list[bool]:
    widths = (preset.kv_lora_rank, preset.qk_nope_head_dim, preset.qk_rope_head_dim, preset.v_head_dim)
    return [width is not None for width in widths]


RULES: tuple[Rule, ...] = (
    Rule("kv_heads", "must divide heads", lambda p: p.heads % p.kv_heads == 0),
    Rule(
        "attention",
        "must be mha where kv_heads is heads, mqa where it is 1, else gqa; mla has as many as heads",
        lambda p: _KV_HEADS_RULES[p.attention](p.heads, p.kv_heads),
    ),
    Rule(
        "attention",
        "is mla exactly where kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim and v_head_dim are given",
        lambda p: all(_latent_widths_given(p)) if p.attention == "mla" else not any(_latent_widths_given(p)),
    ),
    Rule("q_lora_rank", "is of mla only", lambda p: p.attention == "mla" or p.q_lora_rank is None),
    Rule(
        "head_dim",
        "must be qk_nope_head_dim and qk_rope_head_dim together",
        lambda p: p.attention != "mla" or p.head_dim == (p.qk_nope_head_dim or 0) + (p.qk_rope_head_dim or 0),
    ),
    Rule("sliding_layers", "must be 0 to layers", lambda p: p.sliding_layers <= p.layers),
    Rule(
        "sliding_window",
        "is given exactly where sliding_layers is above 0",
        lambda p: (p.sliding_window is not None) == (p.sliding_layers > 0),
    ),
    Rule("moe_layers", "must be 0 to layers", lambda p: p.moe_layers <= p.layers),
    Rule("experts", "is above 0 exactly where moe_layers is", lambda p: (p.experts > 0) == (p.moe_layers > 0)),
    Rule(
        "experts_per_token",
        "must be 1 to experts, and 0 where there are none",
        lambda p: min(1, p.experts) <= p.experts_per_token <= p.experts,
    ),
    Rule("shared_experts", "are of layers with experts", lambda p: p.shared_experts == 0 or p.experts > 0),
    Rule("router_bias", "is of layers with experts", lambda p: not p.router_bias or p.experts > 0),
    Rule(
        "moe_intermediate",
        "is given exactly where moe_layers is above 0",
        lambda p: (p.moe_intermediate is not None) == (p.moe_layers > 0),
    ),
    Rule(
        "intermediate",
        "is given exactly where a layer has no experts",
        lambda p: (p.intermediate is not None) == (p.moe_layers < p.layers),
    ),
    Rule(
        "active_params",
        "must be params, or less where there are experts or a config",
        lambda p: p.active_params <= p.params if p.experts or p.config else p.active_params == p.params,
    ),
    Rule(
        "params_note",
        "must say why published_params is not params, and be blank where it is",
        lambda p: (p.params_note is not None) == (p.published_params not in (None, p.params)),
    ),
)
"""The conditions of a configuration; the first that is broken is reported."""


_OF_ANY_LAYERS = frozenset({"experts_per_token", "active_params", "params_note", "sliding_layers", "moe_layers"})


_FIELDS = {name: field for name, field in Preset.model_fields.items() if name != "source_id"}
MODEL_COLUMNS = (*(name for name, field in _FIELDS.items() if field.is_required()), "source")
_MODEL_ID = "must be lower case letters, digits, dots and hyphens, and begin with a letter or digit"
MODEL_OPTIONAL = tuple(name for name in _FIELDS if name not in MODEL_COLUMNS)


def to_model(row: CsvRow) -> ModelRow:
    """Map one row; a blank cell is the default of its field. Raises BadData for figures that do not fit together."""
    values = {
        name: _READERS[_cell_type(field.annotation)](row, name)
        for name, field in _FIELDS.items()
        if row.cells.get(name)
    }
    try:
        preset = Preset(**values, source_id=row.text("source"))
    except ValidationError as error:
        wrong = error.errors()[0]
        details = {"missing": "must not be blank", "string_pattern_mismatch": _MODEL_ID}
        raise row.error(str(wrong["loc"][0]), details.get(wrong["type"]) or explain(wrong)) from error
    # Where a model has a `config`, its layers differ, and rules of equal layers do not hold.
    rules = [rule for rule in RULES if not preset.config or rule.field in _OF_ANY_LAYERS]
    if broken := next((rule for rule in rules if not rule.holds(preset)), None):
        raise row.error(broken.field, broken.detail)
    return ModelRow(preset=preset, **row.cited())


_READERS: dict[type, Callable[[CsvRow, str], Any]] = {bool: CsvRow.flag, int: CsvRow.integer, str: CsvRow.text}


def _cell_type(annotation: Any) -> type:
    """Return the type that a field's cells are parsed as: bool, int or str, also inside an optional or a union."""
    if annotation in (bool, int):
        return bool if annotation is bool else int
    return next((kind for part in get_args(annotation) if (kind := _cell_type(part)) is not str), str)


read_models = reader_of("models", MODEL_COLUMNS, to_model, optional=MODEL_OPTIONAL)

"""The responses about sizes, their facts and prices. Every field is always present; null means unknown."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema, create_model

from app.catalog.fields import SHOWN_FIELDS, FieldKind, FieldSpec
from app.catalog.projections import SIZE_JSON_FIELDS
from app.catalog.providers import PROVIDERS
from app.catalog.queries.facets import COUNTED_FACETS, RANGE_FACETS
from app.catalog.queries.params import optional

Amount = Annotated[
    Decimal,
    PlainSerializer(float, return_type=float, when_used="json"),
    WithJsonSchema({"type": "number", "format": "double"}),
]
"""Money of any currency, or a rate of two: a Decimal in Python, a plain number in JSON."""

Usd = Amount
"""Money in US dollars."""

NextCursor = Annotated[str | None, Field(description="Send it as `cursor` to get the next page; null on the last.")]
Total = Annotated[int, Field(description="Number of items in the whole list.")]

T = TypeVar("T")
Omittable = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
"""An object that is left out if it does not apply: generators cannot express that an object may be null."""


class Out(BaseModel):
    """A response, or an object inside one."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, defer_build=True)


class PageOut(Out):
    """A page of a list; each list overrides `items` with the type of its items."""

    items: list[Any]
    next_cursor: NextCursor
    total: Total


def page_of(item: type[BaseModel], name: str, things: str, about: str | None = None) -> type[PageOut]:
    """Return a page of a list of things, which documents call by its name."""
    items = (list[item], Field(description=f"The {things} of this page."))  # type: ignore[valid-type]
    return create_model(name, __base__=PageOut, __doc__=about or f"{things[0].upper()}{things[1:]}.", items=items)


class ExchangeRateOut(Out):
    """The rate by which an answer's prices are converted: an amount is USD x units_per_euro / usd_per_euro.

    It is computed exactly and rounded once, half away from zero, to 9 decimal places.
    """

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    units_per_usd: Amount = Field(description="units_per_euro / usd_per_euro, rounded to 9 decimal places.")
    units_per_euro: Amount = Field(description="What the source says of the currency; 1 for the euro.")
    usd_per_euro: Amount = Field(description="What the source says of the US dollar on the same day.")
    day: date = Field(description="The day of the rate: the newest at or before that of the prices.")
    age_days: int = Field(description="Days from `day` to the day of the prices, which is today without `as_of`.")
    source_id: str = Field(description="Id of the source in GET /sources.")


ExchangeRateField = Annotated[
    Omittable[ExchangeRateOut], Field(description="With `currency`: the rate of all converted prices.")
]


class AdjustmentOut(Out):
    """How a price differs from the list price, by rules of `vmsizes ingest adjustments`."""

    list_usd_per_hour: Usd = Field(description="List price of one VM, USD an hour.")
    rules: list[str] = Field(description="Names of the rules that make the price, in their order.")


class SumOut(Out):
    """What a price is the sum of."""

    parts: list[str] = Field(
        description="The parts, USD an hour: `4 OCPU x 0.03`, `32 GiB x 0.002`; or one: `0.102 in us-east-1 x 1.1`."
    )


class ComputedPriceOut(Out):
    """How a price that no list states is computed."""

    estimated: bool = Field(description="Always true.")
    formula: str = Field(description="What the price is computed from, in words.")
    sum: Omittable[SumOut] = optional("In lists of prices and in costs: the figures of the formula.")


EstimateField = Annotated[
    Omittable[ComputedPriceOut], Field(description="What usd_per_hour is computed from, where no list states it.")
]

CommittedHours = Annotated[
    int | None,
    Field(
        description="Hours of each month that a reservation or savings plan is paid for, used or not; null: another."
    ),
]

AdjustmentField = Annotated[
    Omittable[AdjustmentOut],
    Field(description="The list price, where rules of `vmsizes ingest adjustments` changed usd_per_hour."),
]


def converted_amounts(*names: str) -> type[Out]:
    """Return a model with a currency, and the amounts `price_...` in it that are `usd_...` in US dollars."""
    fields: dict[str, Any] = {
        f"price_{name}": (Amount | None, Field(description=f"usd_{name}, converted.")) for name in names
    }
    currency = (str, Field(description="The currency (ISO 4217): `EUR`."))
    return create_model("Fields", __base__=Out, currency=currency, **fields)


class ConvertedPricesOut(Out):
    """The prices of a size in the requested currency, by the answer's exchange rate; null is unknown."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    price_per_hour: Amount | None = Field(description="usd_per_hour, converted.")
    price_per_vcpu_hour: Amount | None = Field(description="price_per_hour by vCPUs, rounded once.")
    price_per_1000_coremark_hour: Amount | None = Field(
        description="price_per_hour by 1,000 CoreMark iterations a second, rounded once."
    )
    price_per_memory_gib_hour: Amount | None = Field(description="price_per_hour by memory_gib, rounded once.")
    price_per_gpu_hour: Amount | None = Field(description="price_per_hour by GPUs, rounded once.")
    price_per_gpu_gib_hour: Amount | None = Field(description="price_per_hour by gpu_memory_gib, rounded once.")
    on_demand_price_per_hour: Amount | None = Field(description="on_demand_usd_per_hour, converted.")
    spot_price_per_hour: Amount | None = Field(description="spot_usd_per_hour, converted.")
    reserved_1y_price_per_hour: Amount | None = Field(description="reserved_1y_usd_per_hour, converted.")
    reserved_3y_price_per_hour: Amount | None = Field(description="reserved_3y_usd_per_hour, converted.")
    savings_1y_price_per_hour: Amount | None = Field(description="savings_1y_usd_per_hour, converted.")
    savings_3y_price_per_hour: Amount | None = Field(description="savings_3y_usd_per_hour, converted.")
    median_price_per_hour: Amount | None = Field(description="median_usd_per_hour, converted.")


class ConvertedPriceOut(Out):
    """A price in the requested currency, by the answer's exchange rate."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    price_per_hour: Amount = Field(description="usd_per_hour, converted.")


_TYPES: Mapping[FieldKind, Any] = {
    "integer": int,
    "number": float,
    "fraction": float,
    "text": str,
    "boolean": bool,
    "date": date,
    "list": list[str],
}


def model_of_fields(specs: Mapping[str, FieldSpec], **first: str) -> type[Out]:
    """Return a model with the types and sentences that the table of fields has; `first` describes texts before them."""
    fields: dict[str, Any] = {name: (str, Field(description=description)) for name, description in first.items()}
    for name, spec in specs.items():
        kind = _TYPES[spec.kind]
        fields[name] = (kind | None if spec.nullable else kind, Field(description=spec.sentence))
    return create_model("Fields", __base__=Out, **fields)


DISPUTED_PRICE = Field(
    description="Whether another retail list of the same 60 days has another price; GET /conflicts has both."
)
_SHOWN = {name: SHOWN_FIELDS[name] for name in (*SIZE_JSON_FIELDS, "status")}


class SizeOut(model_of_fields(_SHOWN)):  # type: ignore[misc]  # made of the table
    """One VM size: the accepted value of every field, and a price."""

    provider: str = Field(description=f"Who sells it: {', '.join(PROVIDERS)}. Extensible.")
    region: str | None = Field(description="Where the prices hold: the requested region, else the cheapest.")
    usd_per_hour: Usd | None = Field(description="Price under the requested purchase model; null is unknown.")
    usd_per_vcpu_hour: float | None = Field(description="usd_per_hour / vcpus, rounded to 9 decimal places.")
    usd_per_1000_coremark_hour: float | None = Field(
        description="1000 x usd_per_hour / coremark, rounded to 9 decimal places."
    )
    usd_per_memory_gib_hour: float | None = Field(description="usd_per_hour / memory_gib, rounded to 9 decimal places.")
    usd_per_gpu_hour: float | None = Field(
        description="usd_per_hour / gpu_fraction or gpu_count, rounded to 9 decimal places."
    )
    usd_per_gpu_gib_hour: float | None = Field(
        description="usd_per_hour / gpu_memory_gib, rounded to 9 decimal places."
    )
    on_demand_usd_per_hour: Usd | None = Field(description="On demand, in the region.")
    on_demand_as_of: date | None = Field(description="The day from which the on-demand price is known to hold.")
    on_demand_approximate_date: bool | None = Field(
        description="The on-demand price's source is undated: on_demand_as_of is only the year it points to."
    )
    spot_usd_per_hour: Usd | None = Field(
        description="On spot, in the region; null, too, where only an undated price is known, or one over a year old."
    )
    spot_as_of: date | None = Field(description="The day from which the spot price is known to hold.")
    spot_approximate_date: bool | None = Field(description="Never true: an undated spot price is no offer.")
    reserved_1y_usd_per_hour: Usd | None = Field(description="Reserved for a year, in the region.")
    reserved_3y_usd_per_hour: Usd | None = Field(description="Reserved for three years, in the region.")
    savings_1y_usd_per_hour: Usd | None = Field(description="Under a savings plan of a year, in the region.")
    savings_3y_usd_per_hour: Usd | None = Field(description="Under a savings plan of three years, in the region.")
    price_unusual: bool | None = Field(
        description="Whether usd_per_hour is below 0.4 or above 2.5 of the median of the size over all regions; "
        "without `region` such a price is never the cheapest."
    )
    median_usd_per_hour: float | None = Field(description="That median, where the price is unusual.")
    price_disputed: bool | None = DISPUTED_PRICE
    price_as_of: date | None = Field(description="The day from which usd_per_hour is known to hold.")
    price_age_days: int | None = Field(description="Days since price_as_of, today.")
    adjustment: AdjustmentField = None
    estimate: EstimateField = None
    converted: Omittable[ConvertedPricesOut] = optional("With `currency`: the prices in that currency.")


class NoPriceOut(Out):
    """Why no price is shown: no size has one in the requested regions, for the system and the purchase model."""

    os: str = Field(description="The requested system. Extensible.")
    purchase: str = Field(description="The requested purchase model. Extensible.")
    known_in: list[str] = Field(
        description="The regions, of the clouds that are asked for, in which any size has such a price on the day."
    )
    detail: str = Field(description="The same in words, and what brings more prices.")


NoPriceField = Annotated[
    Omittable[NoPriceOut],
    Field(description="Where prices are known, if none is where they were asked for: unknown, which is not none."),
]


class SizeDetailOut(SizeOut):
    """One VM size, with the exchange rate of its converted prices."""

    exchange_rate: ExchangeRateField = None


class SizePage(PageOut):
    """Sizes."""

    items: list[SizeOut] = Field(description="The sizes of this page.")
    exchange_rate: ExchangeRateField = None
    no_price: NoPriceField = None
    unknown: dict[str, int] = Field(
        description="How many more sizes may match, by the figure that is unknown of them: unknown meets no bound.",
        examples=[{"infiniband": 21}],
    )


class SourcedOut(Out):
    """The place of a value in a source."""

    file: str = Field(description="The file that has the value.")
    line: int = Field(description="The line of the file, from 1.")
    source_id: str = Field(description="Id of the source in GET /sources.")
    source_title: str = Field(description="The source's title.")
    source_kind: str = Field(description="vendor_page, vendor_api, vendor_announcement or third_party. Extensible.")
    source_url: str | None = Field(description="Where the source is published.")
    source_published_on: date | None = Field(description="The day on which the source was published.")


class FactOut(SourcedOut):
    """The value that one source has for one field of a size."""

    field: str = Field(description="Name of the field: `gpu_memory_gib`.")
    value: str = Field(description="In the unit beside it; a fraction of a GPU is exact: `1/6`.")
    unit: str | None = Field(description="The unit of value; null for what is no amount.")
    corrected_value: str | None = Field(description="The value that is used instead if this one is known to be wrong.")
    verdict: str = Field(description="accepted, agrees or disputed. Extensible.")
    reason: str = Field(description="Why it was or was not accepted.")
    raw: str = Field(description="The cell exactly as in the source.")
    note: str | None = Field(description="How the value was derived if it differs from the cell.")
    written_as: str = Field(description="The size's name as the source spells it.")


FactPage = page_of(FactOut, "FactPage", "facts")


class AvailabilityOut(Out):
    """A region in which a size is offered, on the day of the source."""

    region: str = Field(description="Code of the region.")
    zones: list[str] = Field(description="The zones that have it; empty where none can be chosen, or none are known.")
    zones_known: bool = Field(description="Whether the source names the zones, or says that none can be chosen.")
    as_of: date | None = Field(description="The day of the source.")
    source_id: str = Field(description="Id of the source in GET /sources.")


class AvailabilityPage(PageOut):
    """Regions in which a size is offered."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)
    items: list[AvailabilityOut] = Field(description="The regions of this page.")
    zones_note: str = Field(
        default="A zone number of Azure can mean another zone in another subscription, and an account may not be "
        "allowed to use every zone: check yours before you pin a zone.",
        description="What zone numbers do not say.",
    )


class ConflictOut(SourcedOut):
    """A value that was not accepted, with the one that was."""

    line: int | None = Field(  # type: ignore[assignment]  # lists of prices are merged, and keep no lines
        description="The line of the file, from 1; null for a price."
    )
    kind: str = Field(description="size, series, gpu or price. Extensible.")
    subject: str = Field(description="Key of the size, id of the series or GPU.")
    name: str = Field(description="Name of the size, series or GPU.")
    field: str = Field(description="Name of the field: `gpu_memory_gib`; of a price `usd_per_hour`.")
    region: str | None = Field(description="Of a price: code of the region.")
    os: str | None = Field(description="Of a price: linux or windows. Extensible.")
    purchase: str | None = Field(description="Of a price: the purchase model. Extensible.")
    unit: str | None = Field(description="The unit of both values; null for what is no amount.")
    accepted_value: str = Field(description="The value that was accepted.")
    accepted_source_id: str = Field(description="Id of the source of the accepted value.")
    value: str = Field(description="The value that was not accepted.")
    raw: str = Field(description="The cell exactly as in the source.")
    reason: str = Field(description="Why it was not accepted.")


ConflictPage = page_of(ConflictOut, "ConflictPage", "conflicts")


UNUSUAL = Field(description="Whether it is below 0.4 or above 2.5 of the median of the size over all regions.")
UNUSUAL_MEDIAN = Field(description="That median, USD an hour, where the price is unusual.")


class PriceOut(Out):
    """The price of a size per hour in a region, and the days between which a source has it."""

    region: str = Field(description="Code of the region.")
    os: str = Field(description="linux or windows. Extensible.")
    purchase: str = Field(
        description="on_demand, spot, reserved_1y, reserved_3y, savings_1y or savings_3y. Extensible."
    )
    valid_from: date = Field(description="The first day on which the source has the price.")
    seen_until: date = Field(description="The last day, up to `as_of`, on which the source has the price.")
    usd_per_hour: Usd = Field(description="Price of the VM, USD an hour.")
    approximate_date: bool = Field(description="The source is undated: valid_from is only the year it points to.")
    source_id: str = Field(description="Id of the source in GET /sources.")
    known_from: date = Field(description="The day on which the catalog took the price in.")
    price_age_days: int = Field(description="Days since seen_until, today.")
    unusual: bool = UNUSUAL
    median_usd_per_hour: float | None = UNUSUAL_MEDIAN
    disputed: bool = DISPUTED_PRICE
    adjustment: AdjustmentField = None
    estimate: EstimateField = None
    converted: Omittable[ConvertedPriceOut] = optional("With `currency`: the price in that currency.")


class PricePage(PageOut):
    """Prices."""

    items: list[PriceOut] = Field(description="The prices of this page.")
    exchange_rate: ExchangeRateField = None


class PricePointOut(Out):
    """One price of a source, and the days between which the source has it."""

    valid_from: date = Field(description="The first day on which the source has the price.")
    seen_until: date = Field(description="The last day, up to `until`, on which the source has the price.")
    usd_per_hour: Usd = Field(description="Price of the VM, USD an hour.")
    approximate_date: bool = Field(description="The source is undated: valid_from is only the year it points to.")
    source_id: str = Field(description="Id of the source in GET /sources.")
    known_from: date = Field(description="The day on which the catalog took the price in.")
    unusual: bool = UNUSUAL
    median_usd_per_hour: float | None = UNUSUAL_MEDIAN
    disputed: bool = DISPUTED_PRICE
    estimate: EstimateField = None


class PriceHistoryPage(PageOut):
    """Prices of a size in a region over time, the oldest first."""

    items: list[PricePointOut] = Field(description="The prices of this page.")
    sold_until: date | None = Field(
        description="The last day on which the vendor sold the size by this purchase model, where that was before "
        "`until`; null where it still did, or that is unknown."
    )


class RefusedPriceOut(Out):
    """A price of a retail list that is the price of something else, and so is none of the catalog."""

    size: str = Field(description="Name of the size.")
    region: str = Field(description="Code of the region.")
    os: str = Field(description="linux or windows. Extensible.")
    purchase: str = Field(description="The purchase model: on_demand. Extensible.")
    valid_from: date = Field(description="The first day on which the source has the price.")
    seen_until: date = Field(description="The last day on which the source has the price.")
    usd_per_hour: Usd = Field(description="The price that is refused, USD an hour.")
    source_id: str = Field(description="Id of the source in GET /sources.")
    known_from: date = Field(description="The day on which the catalog took the price in.")
    rule: str = Field(description="equals_windows, cloud_services, flapping or unlike_parent. Extensible.")
    evidence: str = Field(description="What it was compared with.")


RefusedPricePage = page_of(RefusedPriceOut, "RefusedPricePage", "refused prices")


class OfSizeOut(Out):
    """The name of the size that something belongs to."""

    size: str = Field(description="Name of the size.")


class SizePriceOut(PriceOut, OfSizeOut):
    """The price of a size per hour in a region, from a date on, with the name of the size."""


class SizePricePage(PageOut):
    """Prices of any sizes."""

    items: list[SizePriceOut] = Field(description="The prices of this page.")
    exchange_rate: ExchangeRateField = None


class FacetCountOut(Out):
    """A value and the number of sizes that have it."""

    value: str | None = Field(description="The value; null is unknown, or no GPU.")
    count: int = Field(description="Number of sizes that have it.")


class FacetRangeOut(Out):
    """The range of a figure."""

    min: float | None = Field(description="The lowest known value, in the unit of the figure's name.")
    max: float | None = Field(description="The highest known value, in the unit of the figure's name.")
    unknown: int = Field(description="Number of sizes whose value is unknown; no bound finds these.")


class UndecidedOut(Out):
    """Sizes that may match: they meet every parameter on known figures, and have an unknown one that is filtered by."""

    total: int = Field(description="Number of these sizes.")
    fields: list[FacetCountOut] = Field(description="Number of these sizes by the field that is unknown.")
    detail: str | None = Field(description="A sentence that says so; null if there are none.")


class FacetCountsOut(Out):
    """The counted facets that every release has had."""

    total: int = Field(description="Number of sizes that all filters together find.")
    undecided: UndecidedOut = Field(
        description="Sizes that are left out because a figure is unknown; unknown meets no bound."
    )
    provider: list[FacetCountOut] = Field(description="Clouds, ignoring `provider`.")
    gpu_model: list[FacetCountOut] = Field(description="GPU models, ignoring `gpu`.")
    gpu_vendor: list[FacetCountOut] = Field(description="GPU vendors, ignoring `gpu_vendor`.")
    series: list[FacetCountOut] = Field(description="Series by id, ignoring `series`.")
    category: list[FacetCountOut] = Field(description="Types of size, ignoring `category`.")
    region: list[FacetCountOut] = Field(description="Sizes that are found in each region, ignoring `region`.")
    status: list[FacetCountOut] = Field(description="Status today, retired sizes included, ignoring `status`.")
    arch: list[FacetCountOut] = Field(description="CPU architectures, ignoring `arch`.")
    flags: list[FacetCountOut] = Field(
        description="Boolean parameters, each with the number of sizes for which it is true."
    )


if TYPE_CHECKING:
    FacetsOut = FacetCountsOut
else:
    FacetsOut = create_model(
        "FacetsOut",
        __base__=FacetCountsOut,
        __doc__="Facets of a search; each leaves its own parameters out, so that another value can be chosen.",
        **{
            name: (list[FacetCountOut], Field(description=f"{SHOWN_FIELDS[name].sentence[:-1]}, ignoring `{param}`."))
            for name, param in COUNTED_FACETS.items()
            if name not in FacetCountsOut.model_fields
        },
        **{name: (FacetRangeOut, Field(description=SHOWN_FIELDS[name].sentence)) for name in RANGE_FACETS},
    )

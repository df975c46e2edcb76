"""The parameters of every query of the catalog as typed, strict models, without SQL or HTTP."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from app.catalog.fields import SHOWN_FIELDS, SIZE_FIELDS
from app.catalog.names import Category, Continent, LowerName, RegionCode
from app.catalog.projections import SIZE_JSON_FIELDS, SPOT_SAVING, UNIT_PRICE_FIELDS
from app.catalog.providers import ProviderId
from app.catalog.purchases import PURCHASE_MODELS, Purchase
from app.errors import BadQuery

SIZE_COLUMNS = {
    name: "series_id" if name == "series" else name
    for name in SIZE_JSON_FIELDS
    if name in SIZE_FIELDS and SIZE_FIELDS[name].column and SIZE_FIELDS[name].kind != "boolean"
}
"""The column of a size for each sort key."""

PRICE_SORT_KEYS: Mapping[str, str | None] = {
    "usd_per_hour": None,
    **{f"{purchase}_usd_per_hour": purchase for purchase in PURCHASE_MODELS},
}
"""Sort keys that are prices, each with its purchase model; None is that of the request."""

SORT_KEYS: tuple[str, ...] = (
    *("name", *SIZE_COLUMNS, "usd_per_hour", *UNIT_PRICE_FIELDS),
    *(f"{purchase}_usd_per_hour" for purchase in PURCHASE_MODELS),
    SPOT_SAVING,
)
"""The keys of `sort`, each also with `-` before it."""


Arch = Literal["x64", "arm64"]
Os = Literal["linux", "windows"]
Status = Literal["preview", "current", "retiring", "withdrawn", "retired", "any"]

ORDERABLE_STATUSES: tuple[Status, ...] = ("preview", "current", "retiring")
"""The statuses of a search that names none: a retired or withdrawn size cannot be ordered."""

MAX_QUANTITY = 1e12
"""Far above any quantity of a VM; the bound keeps numbers finite and within what databases store."""


_COUNT = re.compile(r"\d{1,9}(?:/[1-9]\d{0,3}|\.(?P<shown>\d{1,12}))?")


def parse_gpu_count(value: Any) -> Any:
    """Parse a number of GPUs: `1/6`, and also 0.1667, which is how lists show a sixth, is exactly a sixth."""
    written = _COUNT.fullmatch(str(value).strip())
    if written is None:
        return value
    number = Fraction(written[0])
    shown = len(written["shown"] or "")
    near = number.limit_denominator(8)
    close = shown >= 3 and abs(near - number) <= Fraction(1, 2 * 10**shown)  # noqa: PLR2004  # two digits may be meant literally
    return float(near if close else number)


PLAIN_TEXT_PATTERN = "^[ -~\u00a0-\U0010ffff]*$"
"""Pattern of text without control characters, for the OpenAPI document.

It lists what is allowed and has no backslash, which client generators escape in ways that not every language reads.
The service itself checks by `_plain_text`, because Python's `$` lets a line break at the end pass.
"""
PLAIN_ITEM_PATTERN = "^[ -+.-~\u00a0-\U0010ffff-]*$"
"""The same without a comma, which separates the values of a list."""


def _plain_text(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("must not hold control characters")
    return text


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def _iso_day(value: Any) -> Any:
    """Check that a date is in ISO 8601: pydantic would also read a bare number, as seconds since 1970."""
    if isinstance(value, str) and not _DAY.fullmatch(value):
        raise ValueError("must be a date such as 2026-09-01")
    return value


def _is_absent(value: Any) -> bool:
    """Return whether a value is missing, or a set empty: left out of a dump, it changes no cursor without it."""
    return not value


def _true_or_false(value: Any) -> Any:
    """Check that a boolean is spelled as in JSON: pydantic would also read `yes`, `on` and `1`."""
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("expected true or false")
    return value


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
Day = Annotated[date, BeforeValidator(_iso_day)]
KNOWN_AT = "As the catalog knew it at the end of this day; default: as it knows it now."
"""The description of every parameter `known_at`."""

PlainText = Annotated[
    str,
    Field(min_length=1, max_length=120, json_schema_extra={"pattern": PLAIN_TEXT_PATTERN}),
    AfterValidator(_plain_text),
]


def as_set(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sort and deduplicate, so that equal queries are equal values, with equal cursors and cache keys."""
    return tuple(sorted(set(values)))


# Not str.lower and str.upper themselves, whose signatures pydantic would tokenize: 4 ms of a first request.
def _country(text: str) -> str:
    if not re.fullmatch("[A-Za-z]{2}", text):
        raise ValueError("must be a country code of two letters, such as DE")
    return text.upper()


def _currency(text: str) -> str:
    if not re.fullmatch("[A-Za-z]{3}", text):
        raise ValueError("must be a code of three letters, such as EUR")
    return text.upper()


MAX_VALUES = 60
"""The most values of a parameter or a list in a body that narrows a search."""

LowerText = Annotated[PlainText, AfterValidator(LowerName)]
GpuSet = Annotated[
    tuple[Annotated[PlainText, AfterValidator(LowerName)], ...],
    Field(max_length=MAX_VALUES),
    AfterValidator(as_set),
]
LowerTextSet = Annotated[tuple[LowerText, ...], Field(max_length=MAX_VALUES), AfterValidator(as_set)]
NameSet = Annotated[tuple[LowerText, ...], Field(max_length=200), AfterValidator(as_set)]
"""Names of sizes: a list of those that a policy allows has some 150."""
SortOrder = Annotated[tuple[PlainText, ...], Field(max_length=MAX_VALUES)]
RegionSet = Annotated[
    tuple[Annotated[PlainText, AfterValidator(RegionCode)], ...],
    Field(max_length=MAX_VALUES),
    AfterValidator(as_set),
]
Quantity = Annotated[float, Field(ge=0, le=MAX_QUANTITY, allow_inf_nan=False)]
GIB = "GiB"
Gib = Annotated[Quantity, GIB]
"""An amount of memory or disk, of which commands take other units, too."""
Count = Annotated[int, Field(ge=0, le=2_000_000_000)]
GpuCount = Annotated[float, Field(ge=0, le=MAX_QUANTITY, allow_inf_nan=False), BeforeValidator(parse_gpu_count)]
JsonBool = Annotated[bool, BeforeValidator(_true_or_false)]
ProviderSet = Annotated[
    tuple[ProviderId, ...],
    Field(
        max_length=MAX_VALUES,
        description="The cloud that sells the size; any of several.",
        examples=[["azure"]],
        exclude_if=_is_absent,
    ),
    AfterValidator(as_set),
]
Country = Annotated[str, Field(json_schema_extra={"pattern": "^[A-Za-z]{2}$"}), AfterValidator(_country)]
CountrySet = Annotated[
    tuple[Country, ...],
    Field(max_length=MAX_VALUES, examples=[["US"]], exclude_if=_is_absent),
    AfterValidator(as_set),
]
ContinentSet = Annotated[
    tuple[Continent, ...],
    Field(max_length=MAX_VALUES, examples=[["north_america"]], exclude_if=_is_absent),
    AfterValidator(as_set),
]
Currency = Annotated[str, Field(json_schema_extra={"pattern": "^[A-Za-z]{3}$"}), AfterValidator(_currency)]
UsdAmount = Annotated[Decimal, Field(ge=0, le=Decimal("1e9"), allow_inf_nan=False)]


def optional(description: str, example: Any = None) -> Any:
    """Return a field that may be left out; without an example, that of a parameter has those of its type."""
    shown: dict[str, Any] = {"examples": [example]} if example is not None else {}
    return Field(default=None, description=description, **shown)


def several(description: str, *example: str) -> Any:
    """Return the field of a parameter that takes any number of values; its example as that of `optional`."""
    shown: dict[str, Any] = {"examples": [list(example)]} if example else {}
    return Field(default=(), description=description, **shown)


def is_multi_valued(field: FieldInfo) -> bool:
    """Return whether a parameter takes several values."""
    return get_origin(field.annotation) is tuple


def types_within(annotation: Any) -> Iterator[Any]:
    """Yield a type with all that it is made of: the members of a union, what annotates it, its items."""
    yield annotation
    for argument in get_args(annotation):
        yield from types_within(argument)


ParamsT = TypeVar("ParamsT", bound=BaseModel)


class QueryParams(BaseModel):
    """Base of all parameter models: unknown names are errors, an empty value is absent, `a,b` is two values."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    elsewhere: ClassVar[Mapping[str, str]] = {
        "format": "JSON is the only format here; whole lists are at /sizes.csv and /prices.csv, .ndjson and .parquet",
        "provider": "lists of sizes and of prices are filtered by it: GET /sizes?provider=aws",
    }
    """Names that are no parameters here, and the hint that says what takes them."""

    @model_validator(mode="before")
    @classmethod
    def _split_and_drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        several = multi_valued_fields(cls)
        values = {name: _split(value) if several.get(name) else value for name, value in data.items()}
        # An empty list is no value of a list; of a body it may also stand for a single value, which it is not.
        nothing: dict[bool, tuple[Any, ...]] = {True: ("", [], ()), False: ("",)}
        given = {name: value for name, value in values.items() if value not in nothing[several.get(name, False)]}
        spellings = other_spellings(cls)
        for name, value in given.items():
            grouped = isinstance(value, str) and _GROUPED.fullmatch(value)
            if grouped and (kind := _number_kind(cls, spellings.get(name, name))):
                error = InitErrorDetails(type=f"{kind}_parsing", loc=(name,), input=value)
                raise ValidationError.from_exception_data(cls.__name__, [error])
        for spelling, name in spellings.items():
            if spelling in given:
                if name in given:
                    both = PydanticCustomError("contradiction", BOTH_SPELLINGS, {"spelling": spelling, "name": name})
                    error = InitErrorDetails(type=both, loc=(spelling,), input=given[spelling])
                    raise ValidationError.from_exception_data(cls.__name__, [error])
                given[name] = _in_unit_of(name, given.pop(spelling))
        return given

    def as_params(self, model: type[ParamsT], **others: Any) -> ParamsT:
        """Return the given parameters, and others, as the model of another endpoint, leaving out those it lacks."""
        given = {name: getattr(self, name) for name in self.model_fields_set & model.model_fields.keys()}
        return model(**given | others)


@lru_cache(maxsize=64)
def multi_valued_fields(model: type[BaseModel]) -> Mapping[str, bool]:
    """Return the parameters of a model, and whether each takes several values."""
    return {name: is_multi_valued(field) for name, field in model.model_fields.items()}


BOTH_SPELLINGS = "{spelling} and {name} are one parameter; give one of them"
"""The error of a request that has a bound in both spellings."""


@lru_cache(maxsize=64)
def other_spellings(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the names with a field of a size, `min_gpu_memory_gib`, of the bounds that a model calls otherwise."""
    bounds = [name for name in model.model_fields if name.startswith(("min_", "max_")) and name in FILTERED_FIELDS]
    spelled = {f"{name[:4]}{FILTERED_FIELDS[name]}": name for name in bounds}
    return {spelling: name for spelling, name in spelled.items() if spelling != name}


def as_given(name: str, given: Collection[str]) -> str:
    """Return the spelling of a bound of sizes that a request has; the name itself if it has neither."""
    spellings = (spelling for spelling, meant in other_spellings(SizeFilter).items() if meant == name)
    return name if name in given else next((spelling for spelling in spellings if spelling in given), name)


def _in_unit_of(name: str, value: Any) -> Any:
    """Return a bound that is written in the unit of the field in that of the parameter: Mbps as Gbps."""
    if not name.endswith("_network_gbps") or isinstance(value, bool):
        return value
    try:
        gbps = float(value) / 1000
    except (TypeError, ValueError):
        return value  # the field's own validation reports what is wrong
    return str(gbps) if isinstance(value, str) else gbps  # a body must not have a number in quotes


_GROUPED = re.compile(r"[+-]?[\d._]+_[\d._]+(?:[eE][+-]?\d+)?")
"""A number as Python writes it, which pydantic would read: 1_000."""


def _number_kind(model: type[BaseModel], name: str) -> Literal["int", "float"] | None:
    """Return which numbers a parameter takes; None for one of another type."""
    types = [*types_within(model.model_fields[name].annotation)] if name in model.model_fields else []
    return "int" if int in types else "float" if float in types or Decimal in types else None


def _split(value: Any) -> Any:
    if not isinstance(value, str | list | tuple):
        return value
    values = [value] if isinstance(value, str) else value
    return [part.strip() for item in values for part in str(item).split(",") if part.strip()]


class CurrencyParams(QueryParams):
    """In which currency an answer gives prices beside US dollars."""

    currency: Currency | None = Field(
        default=None,
        description="Give prices in this currency, too (ISO 4217), by the European Central Bank's reference rate of "
        "the day whose prices they are; USD at the rate 1. Bounds, budgets and order stay in USD.",
        examples=["EUR"],
        exclude_if=_is_absent,
    )


class PriceDayParams(QueryParams):
    """Of which day the prices are; all else of a size, its status too, is as of today."""

    as_of: Day | None = Field(
        default=None,
        description="Prices in force on this day; default: today. All else is as of today.",
        examples=["2026-07-01"],
        exclude_if=_is_absent,
    )
    known_at: Day | None = Field(
        default=None,
        description="Prices as the catalog knew them at the end of this day; default: as it knows them now.",
        examples=["2026-09-01"],
        exclude_if=_is_absent,
    )

    @property
    def names_a_day(self) -> bool:
        """Return whether prices must be computed from the price history."""
        return self.as_of is not None or self.known_at is not None


def check_days(params: QueryParams, today: date) -> None:
    """Raise BadQuery for an `as_of`, `known_at` or `until` later than today: no price is known for it."""
    for name in ("as_of", "known_at", "until"):
        day = getattr(params, name, None)
        if day is not None and day > today:
            raise BadQuery(name, day, not_later_than(today))


def not_later_than(today: date) -> str:
    """Return the error text for a day that must not be in the future."""
    return f"must not be later than {today}, which is today (UTC)"


Cursor = Annotated[
    str, Field(max_length=2000, json_schema_extra={"pattern": PLAIN_TEXT_PATTERN}), AfterValidator(_plain_text)
]


class PageParams(QueryParams):
    """Which part of a list to return."""

    limit: int = Field(default=50, ge=1, le=500, description="How many items a page holds at most.", examples=[2])
    cursor: Cursor | None = optional("`next_cursor` of the page before; belongs to the same question.", "")
    fields: tuple[PlainText, ...] = Field(
        default=(),
        max_length=100,
        description="Fields of each item to give, in this order; default: all, which clients with types count on.",
    )

    @classmethod
    def page_param_names(cls) -> set[str]:
        """Return the parameters that choose a part of a list, or how it is shown; all others identify the list."""
        return {*PageParams.model_fields, *CurrencyParams.model_fields}


PRICED_OS = "Whose prices are meant; those of `linux` are also what Windows Server costs with Azure Hybrid Benefit."


class OfferParams(QueryParams):
    """Which prices a query uses: OS, purchase model and regions."""

    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(
        default="on_demand", description="Which price is `usd_per_hour`, is bounded and is sorted by."
    )
    region: RegionSet = several(
        "The prices of this region, of the cheapest of several; default: of the cheapest of all.", "eastus"
    )


class PlaceParams(QueryParams):
    """Where regions are whose prices are meant."""

    country: CountrySet = several("The prices of the regions in this country (ISO 3166-1), or in any of several.")
    continent: ContinentSet = several("The prices of the regions on this continent, or on any of several.")


class SizeSelection(PlaceParams, OfferParams):
    """Which sizes a query selects: by name, GPU, status and region."""

    q: LowerText | None = optional(
        "Words to find in name, series and GPU, each where letters or a number begin; all must be there.", "h100"
    )
    name: NameSet = several(
        "Glob on the name, `*` and `?`: `Standard_NC*_v5`; any of several. No match is an empty list.", "Standard_ND96*"
    )
    series: LowerTextSet = several("A series, by its id or name; any of several.", "nd_h100_v5")
    provider: ProviderSet = ()
    category: Annotated[tuple[Category, ...], Field(max_length=MAX_VALUES), AfterValidator(as_set)] = several(
        "The type of size; any of several.", "gpu_accelerated"
    )
    gpu: GpuSet = several(
        "A GPU by model, family, id or another name (`A100`, `NVIDIA H100 80GB`), or a glob on the first "
        "three; any of several.",
        "H100",
    )
    gpu_vendor: LowerText | None = optional("The maker of the GPU: `NVIDIA`, `AMD`.", "NVIDIA")
    verified: JsonBool | None = optional("Whether the vendor's own documents name the size.")
    disputed: JsonBool | None = optional("Whether sources disagree on any field.")
    status: Annotated[tuple[Status, ...], Field(max_length=MAX_VALUES), AfterValidator(as_set)] = several(
        "Any of several; default: all that can be ordered; `any`: retired and withdrawn ones, too.", "current"
    )
    region: RegionSet = several("Priced in this region by any purchase model; any of several.", "eastus")
    available_in: RegionSet = several("Priced here by the purchase model that is meant; in ALL of several.", "eastus")


class SizeRequirements(QueryParams):
    """What a VM must have, each an inclusive bound; an unknown figure meets none."""

    min_gpu_mem: Gib | None = optional("GPU memory of all the VM's GPUs together, GiB.", 80)
    min_gpu_mem_per_gpu: Gib | None = optional(
        "GPU memory on one GPU, GiB; a fraction of a GPU counts with its slice, an unknown one not at all.", 80
    )
    min_gpus: GpuCount | None = optional("GPUs; a sixth may be written 1/6 or 0.1667.", 8)
    min_vcpus: Count | None = optional("vCPUs.", 96)
    min_memory: Gib | None = optional("Memory, GiB.", 900)
    min_local_disk: Gib | None = optional("Temporary and NVMe disks together, GiB.", 1000)
    min_network_gbps: Quantity | None = optional("Network bandwidth of the VM, Gbps.", 80)
    infiniband: JsonBool | None = optional("InfiniBand (RDMA), or none.")
    min_infiniband_gbps: Quantity | None = optional("InfiniBand of the VM, Gbps.", 400)
    nvlink: JsonBool | None = optional("GPUs joined by NVLink, or not.")
    arch: Arch | None = optional("CPU architecture.")
    premium_storage: JsonBool | None = optional("Premium Storage is supported, or not.")
    premium_storage_caching: JsonBool | None = optional("Premium Storage caching is supported, or not.")
    ultra_disk: JsonBool | None = optional("Ultra Disk is supported, or not.")
    live_migration: JsonBool | None = optional("Live migration is supported, or not.", False)
    memory_preserving_updates: JsonBool | None = optional("Memory-preserving updates are supported, or not.", False)
    generation_1: JsonBool | None = optional("Generation 1 VMs are supported, or not.", False)
    generation_2: JsonBool | None = optional("Generation 2 VMs are supported, or not.")
    accelerated_networking: JsonBool | None = optional("Accelerated networking is supported, or not.")
    ephemeral_os_disk: JsonBool | None = optional("Ephemeral OS disk is supported, or not.")
    nested_virtualization: JsonBool | None = optional("Nested virtualization is supported, or not.", False)
    hibernation: JsonBool | None = optional("Hibernation is supported, or not.", False)
    gpudirect_rdma: JsonBool | None = optional("GPUDirect RDMA is supported, or not.")
    encryption_at_host: JsonBool | None = optional("Encryption at host is supported, or not.")
    trusted_launch: JsonBool | None = optional("Trusted launch is supported, or not.", False)


class SizeFilter(SizeSelection, SizeRequirements):
    """All filters of a search."""

    cpu: LowerTextSet = several(
        "A processor by model or generation, whole words or a glob: `EPYC 9*`, `Cobalt`, `Sapphire*`; any "
        "of several. Of a VM that may get one of several processors, one is enough.",
        "EPYC 9*",
    )
    cpu_vendor: LowerText | None = optional("The maker of the processor: `Intel`, `AMD`, `Microsoft`.", "AMD")
    burstable: JsonBool | None = optional("Saves and spends CPU credits, or not.")
    min_data_disks: Count | None = optional("Data disks that can be attached.", 16)
    min_uncached_disk_iops: Count | None = optional("Operations a second on remote disks, uncached.", 20000)
    min_uncached_disk_mbps: Quantity | None = optional(
        "Throughput of remote disks, uncached, megabytes (10^6) a second.", 500
    )
    local_nvme: JsonBool | None = optional("Local NVMe disks, or none.")
    disk_controller: LowerText | None = optional("What remote disks can be attached by: `NVMe`, `SCSI`.", "NVMe")
    min_nics: Count | None = optional("Network interfaces.", 4)
    fabric: LowerText | None = optional(
        "The network for work on several VMs together: `InfiniBand`, `EFA`, `RoCE`, `none`.", "InfiniBand"
    )
    confidential_computing: LowerText | None = optional("What encrypts the memory of the VM: `SNP`, `TDX`.", "SNP")
    min_zones: Count | None = optional(
        "Zones of `region` in which the size is offered, as lists of zones say. Needs one `region`."
    )
    max_gpu_mem: Gib | None = optional("GPU memory of all the VM's GPUs together, GiB.", 1128)
    max_gpu_mem_per_gpu: Gib | None = optional(
        "GPU memory of one whole GPU, GiB; where the number of GPUs is unknown, so is this.", 141
    )
    max_gpus: GpuCount | None = optional("GPUs; 0 means no GPU.", 8)
    max_vcpus: Count | None = optional("vCPUs.", 96)
    max_memory: Gib | None = optional("Memory, GiB.", 2000)
    min_usd_per_hour: UsdAmount | None = optional("Price in the region that the row names, USD an hour.", 1)
    max_usd_per_hour: UsdAmount | None = optional("Price in the region that the row names, USD an hour.", 100)


_SHORT_NAMES = {
    "gpu_mem": "gpu_memory_gib",
    "gpu_mem_per_gpu": "gpu_memory_gib_per_gpu",
    "gpus": "gpu_count",
    "memory": "memory_gib",
    "local_disk": "local_disk_gib",
    "network_gbps": "network_mbps",
    "data_disks": "max_data_disks",
    "nics": "max_nics",
}
"""What `min_` and `max_` bound by a name that is not that of the field."""


def _filtered_field(name: str) -> str | None:
    bounded = re.sub("^(min|max)_", "", name)
    field = _SHORT_NAMES.get(bounded, bounded)
    return field if field in SHOWN_FIELDS and name != "name" else None


FILTERED_FIELDS: Mapping[str, str] = {
    name: field for name in SizeFilter.model_fields if (field := _filtered_field(name)) is not None
}
"""The field of a size that each filter is about, by the names of both; a filter that is not here is of its own kind."""

WORD_FILTERS = tuple(name for name in FILTERED_FIELDS if SizeFilter.model_fields[name].annotation == LowerText | None)
"""Filters whose value is a word that sizes have in a field; one that no size has is an error."""

FACET_OF_PARAM: Mapping[str, str] = {"gpu": "gpu_model", "cpu": "cpu_model", **FILTERED_FIELDS}
"""The facet that ignores each parameter; a parameter that is not here narrows all facets."""


class FacetSearch(PriceDayParams, SizeFilter):
    """What the sizes are that facets count, and of which day their prices."""


class SizeList(PriceDayParams, SizeFilter):
    """Filters and order of a list of sizes."""

    sort: SortOrder = Field(
        default=("name",),
        description="Columns to order by, `-` before one descends: `-gpu_memory_gib,usd_per_hour`. Unknown comes last. "
        f"Keys: {', '.join(SORT_KEYS)}.",
        examples=[["usd_per_hour", "-gpu_memory_gib"]],
    )


class SizeSearch(SizeList, CurrencyParams, PageParams):
    """A search: filters, order, currency and page."""

    @property
    def is_quick(self) -> bool:
        """Whether it is fast enough for the event loop: today's prices, at most a few converted to a currency."""
        return not self.names_a_day and (self.currency is None or self.limit <= _QUICKLY_CONVERTED)


_QUICKLY_CONVERTED = 50
"""Converting this many sizes takes 6 ms."""


class SizeParams(PriceDayParams, CurrencyParams):
    """How one size is shown."""


FitSort = Literal["cost_per_hour", "cost_per_job", "headroom", "waste", "nodes"]
ResourceInclude = Literal["rejected"]
Hours = Annotated[Decimal, Field(ge=Decimal("1e-9"), le=Decimal(1_000_000), allow_inf_nan=False)]
HoursPerMonth = Annotated[Hours, Field(le=744)]
"""Hours a month, at most those of a 31-day month."""
MAX_COMPARED = 10


class DatedSelection(PriceDayParams, SizeSelection):
    """Sizes at the prices of a day."""


class FitSearch(DatedSelection, SizeRequirements, CurrencyParams, PageParams):
    """What a job needs of its VMs, and what it may cost."""

    elsewhere: ClassVar[Mapping[str, str]] = {
        **QueryParams.elsewhere,
        **dict.fromkeys(
            (
                *("model", "config", "inference", "training", "serving"),
                *("concurrency", "users", "context", "context_tokens"),
            ),
            "sizes for a model are found by POST /fit",
        ),
    }

    max_nodes: int = Field(
        default=1, ge=1, le=10_000, description="Pooled amounts may be met by up to this many VMs.", examples=[2]
    )
    hours: Hours | None = optional("How long the job runs; gives the cost of the job.", 24)
    hours_per_month: HoursPerMonth = Field(
        default=Decimal(730),
        description="Hours a month that a month's cost is made of; of reservations and savings plans 730 anyway.",
        examples=[730],
    )
    budget_usd_per_month: UsdAmount | None = optional("The most that all VMs may cost a month, USD.", 100000)
    sort: FitSort = Field(default="cost_per_hour", description="What the best option is; unknown prices come last.")
    include: Annotated[tuple[ResourceInclude, ...], Field(max_length=MAX_VALUES)] = several(
        "`rejected` lists sizes that do not fit, 2,000 at most, with each failing constraint."
    )

    @field_validator("sort")
    @classmethod
    def _needs_hours(cls, sort: FitSort, about: ValidationInfo) -> FitSort:
        if sort == "cost_per_job" and about.data.get("hours", ...) is None:  # invalid hours have an error of their own
            raise PydanticCustomError("contradiction", "needs hours, how long the job runs")
        return sort


class SimilarSearch(PriceDayParams, PlaceParams, OfferParams, PageParams):
    """Parameters of a search for similar sizes."""

    region: RegionSet = several(
        "Only sizes that have a price in this region, in any of several, with the cheapest of them.", "eastus"
    )
    provider: ProviderSet = ()
    limit: int = Field(default=10, ge=1, le=500, description="How many items a page holds at most.", examples=[2])


class CompareSearch(PriceDayParams, PlaceParams, OfferParams, CurrencyParams):
    """Which sizes to compare."""

    size: Annotated[
        tuple[Annotated[PlainText, AfterValidator(LowerName)], ...], Field(min_length=2, max_length=MAX_COMPARED)
    ] = Field(
        description="The sizes, 2 to 10, by any of their names; the answer keeps their order.",
        examples=[["nc24ads_a100_v4", "nc40ads_h100_v5"]],
    )
    baseline: LowerText | None = optional(
        "The one of them that the others are compared with; default: the first.", "nc24ads_a100_v4"
    )

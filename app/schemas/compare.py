"""The responses about similar sizes and comparisons."""

from typing import Annotated

from pydantic import Field, PlainSerializer

from app.catalog.providers import PROVIDERS
from app.fit.similarity import DISTANCE_DIGITS
from app.schemas.sizes import AdjustmentField, ExchangeRateField, NextCursor, Out, Total, Usd

Distance = Annotated[
    float, PlainSerializer(lambda exact: round(exact, DISTANCE_DIGITS), return_type=float, when_used="json")
]
"""A share of 1, which JSON has rounded: who rounds it to fewer digits for a page starts from the exact one."""


class TermOut(Out):
    """One term of a distance."""

    term: str = Field(description="gpu_class, gpu_memory_gib, gpu_count, usd_per_hour, vcpus, memory_gib. Extensible.")
    unit: str | None = Field(description="Of wanted, value and difference; null for the class of GPU.")
    wanted: float | None = Field(description="The value of the size in the request.")
    value: float | None = Field(description="The value of the other size.")
    difference: float | None = Field(description="value - wanted; null where the value is unknown.")
    difference_percent: float | None = Field(description="100 x (value - wanted) / wanted.")
    weight: int = Field(description="Weight of the term.")
    distance: Distance = Field(description="0 (the same) to 1 (eight times, an eighth, or another vendor's GPU).")
    contribution: Distance = Field(
        description="What it adds to the distance of the sizes: weight x distance / sum of weights."
    )
    detail: str = Field(description="The same in words.")


class SimilarOut(Out):
    """A size that is similar to another."""

    size: str = Field(description="Name of the size.")
    provider: str | None = Field(description=f"Who sells it: {', '.join(PROVIDERS)}. Extensible.")
    distance: Distance = Field(description="The sum of the contributions: 0 (the same) to 1.")
    cheaper: bool | None = Field(description="Costs less an hour; null where a price is unknown.")
    bigger: bool | None = Field(description="At least as much GPU memory, vCPUs and memory, and more of one of them.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    verified: bool = Field(description="Whether the vendor's own documents name this size.")
    series: str | None = Field(description="Id of its series.")
    gpu_model: str | None = Field(description="The GPU with its memory.")
    gpu_count: float | None = Field(description="To four digits; the exact fraction is in gpu_fraction.")
    gpu_fraction: str | None = Field(description="The exact part of a GPU, `1/6`; null for whole GPUs.")
    gpu_memory_gib: float | None = Field(description="Of all GPUs of the VM together, GiB.")
    vcpus: int | None = Field(description="vCPUs of the VM.")
    memory_gib: float | None = Field(description="Memory of the VM, GiB.")
    region: str | None = Field(description="Where the price holds.")
    usd_per_hour: Usd | None = Field(description="Price under the requested purchase model; null is unknown.")
    adjustment: AdjustmentField = None
    terms: list[TermOut] = Field(
        description="The terms of the distance whose value is known for the size in the request."
    )


class SimilarPage(Out):
    """Sizes that are similar to one, nearest first."""

    size: str = Field(description="The size in the request.")
    items: list[SimilarOut] = Field(description="The sizes of this page, nearest first.")
    next_cursor: NextCursor
    total: Total


class CellOut(Out):
    """The value of one size."""

    size: str = Field(description="Name of the size.")
    value: bool | int | float | str | list[str] | None = Field(
        description="A number, a string, a list of strings or a boolean, by the field; null is unknown."
    )
    difference: float | None = Field(description="value - the baseline's; null if either is unknown or not an amount.")
    difference_percent: float | None = Field(
        description="100 x difference / the baseline's value; null if that is zero."
    )


class LineOut(Out):
    """One field of all sizes."""

    field: str = Field(description="Name of the field: `gpu_memory_gib`.")
    unit: str | None = Field(description="Of value and difference; null if they are not amounts.")
    differs: bool = Field(description="Whether the known values differ.")
    values: list[CellOut] = Field(description="One for each size, in the order of the request.")


class ComparisonOut(Out):
    """Sizes side by side, in the order of the request."""

    baseline: str = Field(description="Name of the size that the others are compared with.")
    sizes: list[str] = Field(description="Names of the sizes.")
    fields: list[LineOut] = Field(
        description="Every field of a size, the figures of all its GPUs together, and prices per unit of those; "
        "with `currency` each price also in that currency, `price_per_…` after `usd_per_…`."
    )
    exchange_rate: ExchangeRateField = None

"""The wire of sizes beside each other: which are like one, and how several differ."""

from pydantic import Field

from app.api.schemas.sizes import NextCursor, Out, Total, Usd


class TermOut(Out):
    """One part of a distance."""

    term: str = Field(description="gpu_class, gpu_memory_gib, gpu_count, usd_per_hour, vcpus, memory_gib. Extensible.")
    unit: str | None = Field(description="Of wanted, value and difference; null for the class of GPU.")
    wanted: float | None = Field(description="What the size has that was asked about.")
    value: float | None = Field(description="What the other size has.")
    difference: float | None = Field(description="value - wanted; null where the value is unknown.")
    difference_percent: float | None = Field(description="100 x (value - wanted) / wanted.")
    weight: int = Field(description="How much the term counts.")
    distance: float = Field(description="0 (the same) to 1 (eight times, an eighth, or another vendor's GPU).")
    contribution: float = Field(description="What it adds to the distance of the sizes: weight x distance / weights.")
    detail: str = Field(description="The same in words.")


class SimilarOut(Out):
    """A size that is like another."""

    size: str = Field(description="Name of the size.")
    distance: float = Field(description="The sum of the contributions: 0 (the same) to 1.")
    cheaper: bool | None = Field(description="Costs less an hour; null where a price is unknown.")
    bigger: bool | None = Field(description="At least as much GPU memory, vCPUs and memory, and more of one of them.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    verified: bool = Field(description="The vendor's own documents name this size.")
    series: str | None = Field(description="Id of its series.")
    gpu_model: str | None = Field(description="The GPU with its memory.")
    gpu_count: float | None = Field(description="To four digits; the exact fraction is in gpu_fraction.")
    gpu_fraction: str | None = Field(description="The exact part of a GPU, `1/6`; null for whole GPUs.")
    gpu_memory_gib: float | None = Field(description="Of all GPUs of the VM together, GiB.")
    vcpus: int | None = Field(description="vCPUs of the VM.")
    memory_gib: float | None = Field(description="Memory of the VM, GiB.")
    region: str | None = Field(description="Where the price holds.")
    usd_per_hour: Usd | None = Field(description="Of the purchase model that was asked for; null is unknown.")
    terms: list[TermOut] = Field(description="Those of which the size has a value that was asked about.")


class SimilarPage(Out):
    """Sizes that are like one, the nearest first."""

    size: str = Field(description="The size that was asked about.")
    items: list[SimilarOut] = Field(description="The sizes of this page, the nearest first.")
    next_cursor: NextCursor
    total: Total


class CellOut(Out):
    """The value of one size."""

    size: str = Field(description="Name of the size.")
    value: bool | int | float | str | list[str] | None = Field(
        description="A number, a text, texts, or true or false, as the field has it; null is unknown."
    )
    difference: float | None = Field(description="value - the baseline's; null where one is unknown, or is no amount.")
    difference_percent: float | None = Field(description="100 x difference / the baseline's; of zero there is none.")


class LineOut(Out):
    """One field of all sizes."""

    field: str = Field(description="Name of the field: `gpu_memory_gib`.")
    unit: str | None = Field(description="Of value and difference; null for what is no amount.")
    differs: bool = Field(description="Whether the values that are known differ.")
    values: list[CellOut] = Field(description="One for each size, in the order in which they were asked for.")


class ComparisonOut(Out):
    """Sizes side by side, in the order in which they were asked for."""

    baseline: str = Field(description="Name of the size that the others are compared with.")
    sizes: list[str] = Field(description="Names of the sizes.")
    fields: list[LineOut] = Field(
        description="Every field of a size, what its GPUs do together, and what a unit of that costs."
    )

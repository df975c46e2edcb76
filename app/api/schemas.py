"""The wire: what every answer looks like. Every field is always there, null where nobody knows."""

from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema

Usd = Annotated[
    Decimal,
    PlainSerializer(float, return_type=float, when_used="json"),
    WithJsonSchema({"type": "number", "format": "double"}),
]
"""Money: exact inside, a plain JSON number outside."""

NextCursor = Annotated[str | None, Field(description="Give it as `cursor` to get the next page; null on the last.")]
Total = Annotated[int, Field(description="How many items the whole list has.")]


class Out(BaseModel):
    """An answer, or a part of one."""

    model_config = ConfigDict(extra="forbid", from_attributes=True, defer_build=True)


class SizeOut(Out):
    """One VM size: the accepted value of every field, and a price."""

    name: str
    provider: str
    series: str | None = Field(description="Id of the series.")
    verified: bool = Field(description="The vendor's own documents name this size.")
    disputed: bool = Field(description="Sources disagree on some field; GET /sizes/{name}/facts says who says what.")
    disputed_fields: list[str]
    vcpus: int | None
    cpu_model: str | None
    arch: str | None = Field(description="x64 or arm64. Extensible.")
    memory_gib: float | None
    gpu_vendor: str | None
    gpu_model: str | None
    gpu_id: str | None = Field(description="Id of the model in GET /gpus.")
    gpu_count: float | None = Field(description="To four digits; the exact fraction is in gpu_fraction.")
    gpu_fraction: str | None = Field(description="The exact part of a GPU, `1/6`; null for whole GPUs.")
    gpu_memory_gib: float | None = Field(description="Of all GPUs of the VM together; for a fraction, its slice.")
    gpu_memory_gib_per_gpu: float | None = Field(description="Of one whole GPU, as marketed.")
    gpu_interconnect: str | None
    nvlink: bool | None
    temp_disk_gib: float | None
    temp_disk_count: int | None
    nvme_disk_gib: float | None = Field(description="Of all local NVMe disks together.")
    nvme_disk_count: int | None
    max_data_disks: int | None
    uncached_disk_iops: int | None
    uncached_disk_mbps: float | None = Field(description="Megabytes (10^6) a second.")
    max_nics: int | None
    network_mbps: int | None = Field(description="Megabits a second.")
    infiniband: bool | None
    infiniband_gbps: float | None = Field(description="Gigabits a second of the whole VM.")
    flags: list[str] = Field(description="The features that are supported; each is a column of its own, too.")
    premium_storage: bool | None
    premium_storage_caching: bool | None
    ultra_disk: bool | None
    live_migration: bool | None
    memory_preserving_updates: bool | None
    generation_1: bool | None
    generation_2: bool | None
    accelerated_networking: bool | None
    ephemeral_os_disk: bool | None
    nested_virtualization: bool | None
    hibernation: bool | None
    gpudirect_rdma: bool | None
    preview: bool | None
    retirement_date: date | None
    source_url: str | None = Field(description="The page that counts first among those that name the size.")
    status: str = Field(description="preview, current, retiring (a date is announced) or retired, today. Extensible.")
    region: str | None = Field(description="Where the prices hold: the asked region, else the cheapest.")
    usd_per_hour: Usd | None = Field(description="Of the purchase model that was asked for; null is unknown.")
    usd_per_gpu_hour: float | None = Field(description="usd_per_hour for each GPU, or for the fraction of one.")
    usd_per_gpu_gib_hour: float | None = Field(description="usd_per_hour for each GiB of GPU memory.")
    on_demand_usd_per_hour: Usd | None
    on_demand_as_of: date | None = Field(description="The day from which the on-demand price is known to hold.")
    spot_usd_per_hour: Usd | None
    spot_as_of: date | None = Field(description="The day from which the spot price is known to hold.")


class SizePage(Out):
    """Sizes."""

    items: list[SizeOut]
    next_cursor: NextCursor
    total: Total


class SourcedOut(Out):
    """Where a word stands, and who says it."""

    file: str
    line: int
    source_id: str
    source_title: str
    source_kind: str = Field(description="vendor_page, vendor_api, vendor_announcement or third_party. Extensible.")
    source_url: str | None
    source_published_on: date | None


class FactOut(SourcedOut):
    """One source's word on one field of a size."""

    field: str
    value: str = Field(description="In the unit beside it; a fraction of a GPU is exact: `1/6`.")
    unit: str | None
    corrected_value: str | None = Field(description="What is taken instead, where the value is known to be wrong.")
    verdict: str = Field(description="accepted, agrees or disputed. Extensible.")
    reason: str = Field(description="Why it was accepted, or was not.")
    raw: str = Field(description="The cell as it stands in the source.")
    note: str | None = Field(description="How the value was derived where it is not what the cell says.")
    written_as: str = Field(description="The size's name as the source spells it.")


class FactPage(Out):
    """Facts."""

    items: list[FactOut]
    next_cursor: NextCursor
    total: Total


class ConflictOut(SourcedOut):
    """A word that was not accepted, beside the one that was."""

    kind: str = Field(description="size, series or gpu. Extensible.")
    subject: str = Field(description="Key of the size, id of the series or GPU.")
    name: str
    field: str
    unit: str | None
    accepted_value: str
    accepted_source_id: str
    value: str
    raw: str
    reason: str


class ConflictPage(Out):
    """Conflicts."""

    items: list[ConflictOut]
    next_cursor: NextCursor
    total: Total


class PriceOut(Out):
    """What a size costs an hour in a region, from a date on."""

    region: str
    os: str
    purchase: str
    valid_from: date
    usd_per_hour: Usd
    approximate_date: bool = Field(description="The source is undated: valid_from is only the year it points to.")
    source_id: str


class PricePage(Out):
    """Prices."""

    items: list[PriceOut]
    next_cursor: NextCursor
    total: Total


class SizePriceOut(Out):
    """What a size costs an hour in a region, from a date on, with the name of the size."""

    size: str = Field(description="Name of the size.")
    region: str = Field(description="Code of the region.")
    os: str = Field(description="linux or windows. Extensible.")
    purchase: str = Field(description="on_demand or spot. Extensible.")
    valid_from: date = Field(description="The day from which the price is known to hold.")
    usd_per_hour: Usd = Field(description="USD an hour of one VM.")
    approximate_date: bool = Field(description="The source is undated: valid_from is only the year it points to.")
    source_id: str = Field(description="Id of the source in GET /sources.")


class SizePricePage(Out):
    """Prices of any sizes."""

    items: list[SizePriceOut]
    next_cursor: NextCursor
    total: Total

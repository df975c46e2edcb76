"""The responses about series, GPUs, regions, sources, revisions, language models, changes, and the accuracy."""

from datetime import date, datetime

from pydantic import ConfigDict, Field

from app.catalog.changes import CHANGE_KINDS
from app.catalog.presets import Preset
from app.catalog.providers import PROVIDERS
from app.catalog.regions import CONTINENTS
from app.schemas.sizes import Out, PageOut


class SeriesOut(Out):
    """A family of sizes; only series whose VMs share one NVLink domain have a rack."""

    id: str = Field(description="Its id: `nd_h100_v5`.")
    name: str = Field(description="Its name: `ND_H100_v5`.")
    provider: str = Field(description=f"Who sells it: {', '.join(PROVIDERS)}. Extensible.")
    family: str | None = Field(description="The family it belongs to: D, NC.")
    category: str | None = Field(description="The type of its sizes: `general_purpose`, `gpu_accelerated`. Extensible.")
    aliases: list[str] = Field(description="Other names that find it.")
    use_cases: list[str] = Field(description="Use cases that the vendor names.")
    integrations: list[str] = Field(description="Integrations that the vendor names.")
    gpu_dtypes: list[str] = Field(description="Data types that the vendor names for its GPUs.")
    supported_images: list[str] = Field(description="Images that the vendor names as supported.")
    ofed_driver: str | None = Field(description="The InfiniBand driver that the vendor names.")
    scale_up_domain_gpus: int | None = Field(description="GPUs that share one NVLink (or xGMI) domain.")
    rack_vms: int | None = Field(description="VMs of one rack.")
    rack_gpus: int | None = Field(description="GPUs of one rack.")
    rack_nvlink_tb_per_s: float | None = Field(description="NVLink bandwidth of one rack, TB/s.")
    rack_fast_memory_tb: float | None = Field(description="Memory of one rack, of GPUs and CPUs together, TB.")
    rack_hbm_tb: float | None = Field(description="GPU memory of one rack, TB.")
    rack_lpddr_tb: float | None = Field(description="CPU memory of one rack, TB.")
    rack_fp4_pflops: float | None = Field(description="FP4 throughput of one rack, PFLOPS.")
    retirement_date: date | None = Field(description="The day on which the series retires.")
    cloud_services: bool | None = Field(
        description="Whether price lists have meters of Cloud Services for its sizes, beside those of Linux."
    )
    reserved_1y_until: date | None = Field(description="The last day on which reservations of a year were sold.")
    reserved_3y_until: date | None = Field(description="The last day on which reservations of three years were sold.")


class SeriesPage(PageOut):
    """Series."""

    items: list[SeriesOut] = Field(description="The series of this page.")


class BenchmarkOut(Out):
    """A published result."""

    id: str = Field(description="Its id.")
    series_id: str | None = Field(description="Id of the series that was measured.")
    scope: str = Field(description="gpu, vm or rack. Extensible.")
    workload: str = Field(description="What was run.")
    metric: str = Field(description="What was measured.")
    value: float = Field(description="The result, in the unit.")
    unit: str = Field(description="The unit of the value.")
    comparison: str | None = Field(description="What the result is compared with.")
    source_id: str = Field(description="Id of the source in GET /sources.")


class SeriesDetailOut(SeriesOut):
    """A series with its sizes, its benchmarks, and the flags that all its sizes have."""

    sizes: list[str] = Field(description="Names of its sizes.")
    flags: list[str] = Field(description="The features that all its sizes support.")
    benchmarks: list[BenchmarkOut] = Field(description="Published results of it.")


class GpuOut(Out):
    """A GPU model: throughput is dense, bandwidths are decimal."""

    id: str = Field(description="Its id: `h100-sxm-80`.")
    vendor: str = Field(description="Who makes it: NVIDIA, AMD. Extensible.")
    model: str = Field(description="The model with its memory: `H100 80GB`.")
    family: str = Field(description="The model without memory and form: `H100`.")
    aliases: list[str] = Field(description="Other names that find it.")
    architecture: str | None = Field(description="The architecture: `Hopper`.")
    compute_capability: str | None = Field(description="CUDA compute capability, or AMD's target: `9.0`, `gfx942`.")
    memory_gib: float | None = Field(description="As marketed.")
    usable_memory_gib: float | None = Field(description="As the operating system sees it.")
    memory_bandwidth_gb_per_s: float | None = Field(description="Memory bandwidth, GB/s.")
    fp64_tflops: float | None = Field(description="FP64 throughput, dense, TFLOPS.")
    fp32_tflops: float | None = Field(description="FP32 throughput, dense, TFLOPS.")
    tf32_tflops: float | None = Field(description="TF32 throughput, dense, TFLOPS.")
    fp16_tflops: float | None = Field(description="FP16 throughput, dense, TFLOPS.")
    bf16_tflops: float | None = Field(description="BF16 throughput, dense, TFLOPS.")
    fp8_tflops: float | None = Field(description="FP8 throughput, dense, TFLOPS.")
    fp4_tflops: float | None = Field(description="FP4 throughput, dense, TFLOPS.")
    int8_tops: float | None = Field(description="INT8 throughput, dense, TOPS.")
    interconnect: str | None = Field(description="What joins it to other GPUs: `NVLink 4.0`.")
    interconnect_gb_per_s: float | None = Field(description="Bandwidth to other GPUs, GB/s.")
    scale_up_domain_gpus: int | None = Field(description="The most GPUs that can be linked, this one included.")


class GpuPage(PageOut):
    """GPU models."""

    items: list[GpuOut] = Field(description="The GPU models of this page.")


class RegionOut(Out):
    """A region."""

    code: str = Field(description="Its code: `eastus`.")
    name: str = Field(description="Its name: `East US`.")
    geography: str | None = Field(description="The part of the world that it belongs to.")
    provider: str = Field(description=f"Whose region it is: {', '.join(PROVIDERS)}. Extensible.")
    place: str | None = Field(description="The city or state where it is.")
    country: str | None = Field(description="Its country by ISO 3166-1: `US`; null for a price of all regions.")
    continent: str | None = Field(description=f"{', '.join(CONTINENTS)}. Extensible.")
    latitude: float | None = Field(description="Degrees north of the place.")
    longitude: float | None = Field(description="Degrees east of the place.")
    source_id: str = Field(description="Id of the source in GET /sources.")


class RegionPage(PageOut):
    """Regions."""

    items: list[RegionOut] = Field(description="The regions of this page.")


class SourceOut(Out):
    """A document, feed or data set."""

    id: str = Field(description="Its id.")
    title: str = Field(description="Its title.")
    publisher: str = Field(description="Who published it.")
    kind: str = Field(description="vendor_page, vendor_api, vendor_announcement or third_party. Extensible.")
    url: str | None = Field(description="Where it is published.")
    published_on: date | None = Field(description="The day on which it was published.")
    sha256: str = Field(description="SHA-256 of the content that was read.")
    pinned: bool = Field(description="Whether its values stay accepted even if other sources disagree.")
    retail: bool = Field(description="Whether its prices are those that the vendor publishes for everybody.")
    formula: str | None = Field(description="How its prices were computed; null where a list states them.")
    newest_day: date | None = Field(
        description="The newest day, up to today, of its prices or exchange rates; null if it has none with a date."
    )


class SourcePage(PageOut):
    """Sources."""

    items: list[SourceOut] = Field(description="The sources of this page.")


class RevisionOut(Out):
    """One ingest that changed something."""

    number: int = Field(description="Its number, from 1.")
    created_at: datetime = Field(description="When it was made, in UTC.")
    digest: str = Field(description="sha256 of the content of the whole catalog after it.")
    source_ids: list[str] = Field(description="Ids of the sources that changed something.")
    counts: dict[str, int] = Field(description="Rows of each table.")
    changes: int | None = Field(
        description="How many events of GET /changes it made; null where it had nothing to be compared with."
    )


class RevisionPage(PageOut):
    """Revisions, the newest first."""

    items: list[RevisionOut] = Field(description="The revisions of this page.")


class ModelOut(Preset):
    """A language model's configuration: widths are numbers of values, contexts and windows are in tokens."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class ModelPage(PageOut):
    """Language models."""

    items: list[ModelOut] = Field(description="The language models of this page.")


class CategoryCoverageOut(Out):
    """For how many sizes of a type a figure is known."""

    category: str | None = Field(description="The type of size; null where it is unknown.")
    total: int = Field(description="Sizes of the type that the figure applies to.")
    known: int = Field(description="Those whose figure is known.")


class UnknownOfSeriesOut(Out):
    """The sizes of a series whose figure is unknown."""

    series: str | None = Field(description="Id of the series; null for sizes of none.")
    sizes: int = Field(description="Sizes whose figure is unknown.")
    total: int = Field(description="Sizes of the series that the figure applies to.")
    reason: str = Field(
        description="no_page (no documentation page among the sources is about these sizes), not_stated (pages are, "
        "and do not state the figure) or stated_of_others (it is known of other sizes of the series). Extensible."
    )


class FieldCoverageOut(Out):
    """For how many sizes a figure is known; a known none, such as no local disk, counts."""

    field: str = Field(description="The field of a size.")
    total: int = Field(description="Sizes that it applies to: those of GPUs do not to sizes without one.")
    known: int = Field(description="Those of them whose figure is known.")
    percent: float | None = Field(description="100 x known / total, to one decimal; null where total is 0.")
    categories: list[CategoryCoverageOut] = Field(description="The same by type of size.")
    unknown: list[UnknownOfSeriesOut] = Field(description="The series with sizes whose figure is unknown, by id.")


class CoverageOut(Out):
    """How much is known of the sizes that a search finds."""

    total: int = Field(description="How many sizes the filters find.")
    items: list[FieldCoverageOut] = Field(description="The figures, as pages of a size order them.")


class ChangeOut(Out):
    """An event: what a revision changed of a size, one of its accepted values, or one of its prices in force."""

    id: int = Field(description="Its number, which grows from event to event.")
    revision: int = Field(description="The number of the revision in GET /revisions.")
    at: datetime = Field(description="When the revision was made, in UTC.")
    kind: str = Field(description=f"What happened: {', '.join(CHANGE_KINDS)}. Extensible.")
    size: str = Field(description="The name of the size, which may be gone.")
    region: str | None = Field(description="The region of the price; null where the event is about no price.")
    os: str | None = Field(description="The operating system of the price.")
    purchase: str | None = Field(description="The purchase model of the price.")
    field: str | None = Field(description="The field of the value or the dispute.")
    old: str | None = Field(description="The price in USD an hour, or the value, that was; null: none, or unknown.")
    new: str | None = Field(description="The price in USD an hour, or the value, that is now; null: none, or unknown.")
    percent: float | None = Field(description="By how much the price rose, or fell (negative), of the old one.")
    valid_from: date | None = Field(description="The first day on which the new price was observed.")
    source_id: str | None = Field(description="Id of the source of the new price or value.")


class ChangePage(PageOut):
    """Events, the oldest first."""

    items: list[ChangeOut] = Field(description="The events of this page.")
    revision: int = Field(description="The newest revision: send it as `since` to get what comes later.")
    tracked_since: datetime = Field(description="Changes are known from here on, in UTC.")


class FamilyAccuracyOut(Out):
    """How the estimates of one figure, for one kind of workload, agree with measurements."""

    family: str = Field(description="Id of the family, which an estimate's evidence names: `decode_step`.")
    title: str = Field(description="What is estimated.")
    figure: str = Field(description="The figure of POST /estimate: `inference.ttft`.")
    unit: str = Field(description="The unit of the figure.")
    leave_one_out_error: float | None = Field(
        description="Median error with the constants fitted without what is estimated; null where none is fitted."
    )
    left_out: str | None = Field(
        description="What they are fitted without: model is the error of models not in the data. Extensible."
    )
    left_out_n: int | None = Field(description="Number of measurements of that error.")
    left_out_in_range_share: float | None = Field(
        description="Share of them within the range of what was not measured; null where it has none."
    )
    n: int = Field(description="Number of measurements.")
    in_range_share: float = Field(description="Share of the measurements between low and high, 0 to 1.")
    range_width: float = Field(description="Median of high / low.")
    median_error: float = Field(description="Median of |mid / measured - 1|.")
    median_ratio: float = Field(description="Median of mid / measured.")
    worst_ratio: float = Field(description="The mid / measured that is furthest from 1.")
    compared_on: date = Field(description="Day of the comparison.")
    source: str = Field(description="Where the measurements are from.")
    license: str = Field(description="The licence of the measurements.")


class AccuracyOut(Out):
    """All families of measurements."""

    items: list[FamilyAccuracyOut] = Field(description="The families, in the order of the documentation.")

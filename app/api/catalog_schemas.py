"""The wire of everything beside sizes: series, GPUs, regions, sources, revisions."""

from datetime import date, datetime

from pydantic import Field

from app.api.schemas import NextCursor, Out, Total


class SeriesOut(Out):
    """A family of sizes; the rack is that of series whose VMs share one NVLink domain."""

    id: str
    name: str
    provider: str
    family: str | None
    aliases: list[str]
    use_cases: list[str]
    integrations: list[str]
    gpu_dtypes: list[str]
    supported_images: list[str]
    ofed_driver: str | None
    scale_up_domain_gpus: int | None = Field(description="GPUs that share one NVLink (or xGMI) domain.")
    rack_vms: int | None
    rack_gpus: int | None
    rack_nvlink_tb_per_s: float | None
    rack_fast_memory_tb: float | None
    rack_hbm_tb: float | None
    rack_lpddr_tb: float | None
    rack_fp4_pflops: float | None
    retirement_date: date | None


class SeriesPage(Out):
    """Series."""

    items: list[SeriesOut]
    next_cursor: NextCursor
    total: Total


class BenchmarkOut(Out):
    """A published result."""

    id: str
    series_id: str | None
    scope: str = Field(description="gpu, vm or rack. Extensible.")
    workload: str
    metric: str
    value: float
    unit: str
    comparison: str | None
    source_id: str


class SeriesDetailOut(SeriesOut):
    """A series with its sizes, its benchmarks, and the flags that all its sizes have."""

    sizes: list[str]
    flags: list[str]
    benchmarks: list[BenchmarkOut]


class GpuOut(Out):
    """A GPU model: throughput is dense, bandwidths are decimal."""

    id: str
    vendor: str
    model: str
    family: str
    aliases: list[str]
    architecture: str | None
    compute_capability: str | None
    memory_gib: float | None = Field(description="As marketed.")
    usable_memory_gib: float | None = Field(description="As the operating system sees it.")
    memory_bandwidth_gb_per_s: float | None
    fp64_tflops: float | None
    fp32_tflops: float | None
    tf32_tflops: float | None
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp8_tflops: float | None
    fp4_tflops: float | None
    int8_tops: float | None
    interconnect: str | None
    interconnect_gb_per_s: float | None
    scale_up_domain_gpus: int | None


class GpuPage(Out):
    """GPU models."""

    items: list[GpuOut]
    next_cursor: NextCursor
    total: Total


class RegionOut(Out):
    """A region."""

    code: str
    name: str
    geography: str | None
    source_id: str


class RegionPage(Out):
    """Regions."""

    items: list[RegionOut]
    next_cursor: NextCursor
    total: Total


class SourceOut(Out):
    """A document, feed or data set."""

    id: str
    title: str
    publisher: str
    kind: str = Field(description="vendor_page, vendor_api, vendor_announcement or third_party. Extensible.")
    url: str | None
    published_on: date | None
    sha256: str = Field(description="Of what was read.")


class SourcePage(Out):
    """Sources."""

    items: list[SourceOut]
    next_cursor: NextCursor
    total: Total


class RevisionOut(Out):
    """One ingest that changed something."""

    number: int
    created_at: datetime
    digest: str = Field(description="sha256 of the content of the whole catalog after it.")
    source_ids: list[str]
    counts: dict[str, int] = Field(description="Rows of each table.")


class RevisionPage(Out):
    """Revisions, the newest first."""

    items: list[RevisionOut]
    next_cursor: NextCursor
    total: Total

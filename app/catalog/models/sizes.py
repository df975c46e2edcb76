"""The tables of sizes: sources and their facts, series, GPUs, regions and availability."""

from datetime import date

from sqlalchemy import false
from sqlmodel import Field

from app.catalog.column_types import BYTEWISE, NOT_IN_DIGEST, WITHOUT_ROWID, CatalogTable
from app.catalog.providers import DEFAULT_PROVIDER


class Source(CatalogTable, table=True):
    """A document, feed or data set that facts and prices come from."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    title: str = Field(sa_type=BYTEWISE)
    publisher: str = Field(sa_type=BYTEWISE)
    kind: str = Field(sa_type=BYTEWISE)
    url: str | None = Field(sa_type=BYTEWISE, default=None)
    published_on: date | None = None
    sha256: str = Field(sa_type=BYTEWISE)
    pinned: bool = Field(
        default=False,
        sa_column_kwargs={"server_default": false()},
        description="what it says stays accepted, whatever others say",
    )
    retail: bool = Field(
        default=False,
        sa_column_kwargs={"server_default": false()},
        description="its prices are those that the vendor publishes for everybody, which are checked",
    )
    formula: str | None = Field(
        sa_type=BYTEWISE, default=None, description="how its prices were computed; null where a list states them"
    )


class Series(CatalogTable, table=True):
    """A family of sizes, with the rack its VMs form where they do."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    name: str = Field(sa_type=BYTEWISE)
    provider: str = Field(sa_type=BYTEWISE)
    family: str | None = Field(sa_type=BYTEWISE, default=None)
    category: str | None = Field(sa_type=BYTEWISE, default=None)
    aliases: str | None = Field(sa_type=BYTEWISE, default=None)
    use_cases: str | None = Field(sa_type=BYTEWISE, default=None)
    integrations: str | None = Field(sa_type=BYTEWISE, default=None)
    gpu_dtypes: str | None = Field(sa_type=BYTEWISE, default=None)
    supported_images: str | None = Field(sa_type=BYTEWISE, default=None)
    ofed_driver: str | None = Field(sa_type=BYTEWISE, default=None)
    scale_up_domain_gpus: int | None = None
    rack_vms: int | None = None
    rack_gpus: int | None = None
    rack_nvlink_tb_per_s: float | None = None
    rack_fast_memory_tb: float | None = None
    rack_hbm_tb: float | None = None
    rack_lpddr_tb: float | None = None
    rack_fp4_pflops: float | None = None
    retirement_date: date | None = None
    cloud_services: bool | None = Field(default=None, description="price lists have meters of Cloud Services for it")
    reserved_1y_until: date | None = Field(default=None, description="the last day reservations of a year were sold")
    reserved_3y_until: date | None = None


class Gpu(CatalogTable, table=True):
    """A GPU model as the operating system sees one of it; throughput is dense."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    vendor: str = Field(sa_type=BYTEWISE)
    model: str = Field(sa_type=BYTEWISE)
    family: str = Field(sa_type=BYTEWISE)
    aliases: str | None = Field(sa_type=BYTEWISE, default=None)
    architecture: str | None = Field(sa_type=BYTEWISE, default=None)
    compute_capability: str | None = Field(sa_type=BYTEWISE, default=None)
    memory_gib: float | None = None
    usable_memory_gib: float | None = None
    memory_bandwidth_gb_per_s: float | None = None
    fp64_tflops: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    fp16_tflops: float | None = None
    bf16_tflops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    int8_tops: float | None = None
    interconnect: str | None = Field(sa_type=BYTEWISE, default=None)
    interconnect_gb_per_s: float | None = None
    scale_up_domain_gpus: int | None = None


class Size(CatalogTable, table=True):
    """The accepted values of one VM size; null is unknown, zero is zero.

    A size is known by its key, so that a source that spells its name otherwise means the same size; `name` is the
    spelling of the source with most authority.
    """

    key: str = Field(
        sa_type=BYTEWISE, primary_key=True, description="the name in lower case, without the prefix of its provider"
    )
    name: str = Field(sa_type=BYTEWISE, unique=True)
    provider: str = Field(sa_type=BYTEWISE)
    series_id: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="series.id", index=True)
    category: str | None = Field(
        sa_type=BYTEWISE, default=None, description="gpu_accelerated if it has GPUs, else that of the series"
    )
    quota_family: str | None = Field(sa_type=BYTEWISE, default=None, description="whose vCPU quota it counts towards")
    parent_size: str | None = Field(sa_type=BYTEWISE, default=None, description="the size whose vCPUs are constrained")
    verified: bool
    disputed: bool
    disputed_fields: str = Field(sa_type=BYTEWISE, description="names joined by `; `; empty where all sources agree")
    search_text: str = Field(sa_type=BYTEWISE, description="what `q` looks through: name, series, GPU; lower case")
    vcpus: int | None = Field(default=None, index=True)
    cpu_model: str | None = Field(sa_type=BYTEWISE, default=None)
    cpu_vendor: str | None = Field(sa_type=BYTEWISE, default=None)
    arch: str | None = Field(sa_type=BYTEWISE, default=None)
    coremark: int | None = None
    burstable: bool | None = None
    cpu_baseline_percent: float | None = None
    cpu_credits_per_hour: int | None = None
    memory_gib: float | None = None
    gpu_id: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="gpu.id", index=True)
    gpu_vendor: str | None = Field(sa_type=BYTEWISE, default=None)
    gpu_model: str | None = Field(sa_type=BYTEWISE, default=None)
    gpu_count: float | None = Field(default=None, description="the double nearest to numerator / denominator")
    gpu_count_numerator: int | None = None
    gpu_count_denominator: int | None = None
    gpu_memory_gib: float | None = Field(default=None, index=True, description="all GPUs of the VM together")
    gpu_memory_gib_per_gpu: float | None = Field(default=None, description="of one whole GPU")
    gpu_interconnect: str | None = Field(sa_type=BYTEWISE, default=None)
    nvlink: bool | None = None
    temp_disk_gib: float | None = None
    temp_disk_count: int | None = None
    nvme_disk_gib: float | None = None
    nvme_disk_count: int | None = None
    local_nvme: bool | None = None
    max_data_disks: int | None = None
    uncached_disk_iops: int | None = None
    uncached_disk_mbps: float | None = None
    disk_controller: str | None = Field(sa_type=BYTEWISE, default=None, description="names joined by `, `")
    max_nics: int | None = None
    network_mbps: int | None = None
    infiniband: bool | None = None
    infiniband_gbps: float | None = None
    fabric: str | None = Field(sa_type=BYTEWISE, default=None)
    confidential_computing: str | None = Field(sa_type=BYTEWISE, default=None)
    premium_storage: bool | None = None
    premium_storage_caching: bool | None = None
    ultra_disk: bool | None = None
    live_migration: bool | None = None
    memory_preserving_updates: bool | None = None
    generation_1: bool | None = None
    generation_2: bool | None = None
    accelerated_networking: bool | None = None
    ephemeral_os_disk: bool | None = None
    nested_virtualization: bool | None = None
    hibernation: bool | None = None
    gpudirect_rdma: bool | None = None
    encryption_at_host: bool | None = None
    trusted_launch: bool | None = None
    preview: bool | None = None
    withdrawn: bool | None = Field(default=None, description="can no longer be had, though no date was announced")
    retirement_date: date | None = None
    source_id: str | None = Field(
        sa_type=BYTEWISE, default=None, foreign_key="source.id", description="the first source by authority"
    )


class SizeAlias(CatalogTable, table=True):
    """Another name of a size, as a price list or an older page spells it."""

    __tablename__ = "size_alias"

    alias_key: str = Field(sa_type=BYTEWISE, primary_key=True)
    alias: str = Field(sa_type=BYTEWISE)
    size_key: str = Field(sa_type=BYTEWISE, foreign_key="size.key", index=True)
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")
    reason: str = Field(sa_type=BYTEWISE)


class Fact(CatalogTable, table=True):
    """The value that one source states for one field of one subject: parsed, and verbatim with file and line."""

    kind: str = Field(sa_type=BYTEWISE, primary_key=True)
    subject: str = Field(sa_type=BYTEWISE, primary_key=True, description="a size's key, a series' or a GPU's id")
    field: str = Field(sa_type=BYTEWISE, primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id", index=True)
    written_as: str = Field(sa_type=BYTEWISE, description="the subject as the source spells it")
    value: str = Field(sa_type=BYTEWISE, description="as app.catalog.fields.to_text writes it")
    unit: str | None = Field(sa_type=BYTEWISE, default=None)
    raw: str = Field(sa_type=BYTEWISE)
    file: str = Field(sa_type=BYTEWISE)
    line: int
    note: str | None = Field(sa_type=BYTEWISE, default=None)
    corrected_value: str | None = Field(
        sa_type=BYTEWISE, default=None, description="what is taken instead of a value that is known to be wrong"
    )
    verdict: str = Field(sa_type=BYTEWISE, description="accepted, agrees or disputed", index=True)
    reason: str = Field(sa_type=BYTEWISE, description="why this value was or was not accepted")


class Correction(CatalogTable, table=True):
    """A fact that is known to be wrong, with the value to use instead and why."""

    kind: str = Field(sa_type=BYTEWISE, primary_key=True)
    subject: str = Field(sa_type=BYTEWISE, primary_key=True)
    field: str = Field(sa_type=BYTEWISE, primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    value: str = Field(sa_type=BYTEWISE)
    reason: str = Field(sa_type=BYTEWISE)


class Region(CatalogTable, table=True):
    """A region of a provider; where one price is for all of its regions, they are one here, without a place."""

    code: str = Field(sa_type=BYTEWISE, primary_key=True)
    name: str = Field(sa_type=BYTEWISE)
    geography: str | None = Field(sa_type=BYTEWISE, default=None)
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")
    provider: str = Field(
        sa_type=BYTEWISE, default=DEFAULT_PROVIDER.id, sa_column_kwargs={"server_default": DEFAULT_PROVIDER.id}
    )
    place: str | None = Field(sa_type=BYTEWISE, default=None, description="the city or state")
    country: str | None = Field(sa_type=BYTEWISE, default=None, description="by ISO 3166-1: US")
    continent: str | None = Field(sa_type=BYTEWISE, default=None)
    latitude: float | None = Field(default=None, description="degrees north")
    longitude: float | None = Field(default=None, description="degrees east")


class Availability(CatalogTable, table=True):
    """A region in which a source says that a size is offered, on the day of the source; other regions lack it."""

    __table_args__ = WITHOUT_ROWID

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    region: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="region.code")
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    zones: str = Field(sa_type=BYTEWISE, description="joined by spaces; empty where a zone cannot be chosen")
    file: str = Field(sa_type=BYTEWISE, sa_column_kwargs={"info": NOT_IN_DIGEST}, description="where it was read")

"""The parts of a question of fit: raw amounts, a machine, what an option must be, whose prices count."""

from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, Field

from app.api.schemas.bodies import In, Many, Positive, Share
from app.catalog.queries.fit_params import Hours
from app.catalog.queries.params import AnyOf, Day, Os, Purchase, Regions, SizeNeeds, Text, Usd

Nodes = Annotated[int, Field(ge=1, le=10_000)]


def _once(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


class ResourcesIn(In, SizeNeeds):
    """What a VM must have, as the parameters of GET /fit."""


class HardwareIn(In):
    """One machine, judged in place of the catalog; what is not said of it is not held against it."""

    gpu: Text | None = Field(default=None, description="A GPU of GET /gpus by any name: `H100-SXM-80GB`.")
    gpus: Annotated[int, Field(ge=1, le=1024)] | None = Field(
        default=None, description="GPUs of the machine; default: as many as the split needs, or 1."
    )
    memory_gib: Positive | None = Field(default=None, description="Memory of one GPU as marketed, GiB.")
    usable_gib: Positive | None = Field(default=None, description="Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: Positive | None = Field(default=None, description="Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: Positive | None = Field(default=None, description="Dense peak of one GPU in the type used, TFLOP/s.")
    compute_capability: Annotated[str, Field(pattern="^([0-9]{1,2}[.][0-9]|gfx[0-9a-f]{3,4})$")] | None = Field(
        default=None, description="`8.0`, or `gfx942`; unknown: every type is taken to be supported."
    )
    scale_up_domain_gpus: Many | None = Field(default=None, description="GPUs that share NVLink; 1: PCIe only.")
    infiniband: bool | None = Field(default=None, description="Machines are joined by InfiniBand; default true.")
    host_memory_gib: Positive | None = Field(default=None, description="Memory of the machine, GiB.")
    local_disk_gib: Positive | None = Field(default=None, description="Local disks of the machine, GiB.")
    vcpus: Many | None = Field(default=None, description="vCPUs of the machine.")
    usd_per_hour: Usd | None = Field(default=None, description="What the machine costs an hour, USD.")


class ConstraintsIn(In):
    """Which sizes are asked about (series, name, gpu, gpu_vendor), and what an option must be (all else)."""

    series: AnyOf = Field(default=(), description="Only these series, by id or name.")
    name: AnyOf = Field(default=(), description="Only names that match a glob: `Standard_NC*_v5`.")
    gpu: AnyOf = Field(
        default=(), description="Only these GPUs, by names or globs as GET /sizes takes them: `A100`, `*80GB*`."
    )
    gpu_vendor: Text | None = Field(default=None, description="Only GPUs of this maker.")
    regions: Regions = Field(default=(), description="Priced in one of these.")
    available_in: Regions = Field(default=(), description="Priced in all of these.")
    min_nodes: Nodes = Field(default=1, description="VMs at least.")
    max_nodes: Nodes = Field(default=1, description="VMs at most.")
    utilization: Share | None = Field(
        default=None, description="Share of a GPU's memory that may be used; default 0.92, in training 0.95."
    )
    tp_in_nvlink: bool = Field(default=False, description="Layers are cut over GPUs that share NVLink only.")
    require_infiniband: bool | None = Field(
        default=None, description="VMs that work together have InfiniBand; default: for training."
    )
    allow_preview: bool = Field(default=True, description="Sizes in preview count.")
    allow_retiring: bool = Field(default=True, description="Sizes with an announced retirement count.")
    allow_legacy: bool = Field(default=False, description="GPUs for graphics, and older than Pascal, count.")
    verified_only: bool = Field(default=False, description="The vendor's own documents must name the size.")
    checkpoint_on_local_disk: bool = Field(default=True, description="A checkpoint must fit on the VM's local disk.")
    budget_usd_per_month: Usd | None = Field(default=None, description="The most that all VMs may cost a month, USD.")
    budget_usd_per_job: Usd | None = Field(default=None, description="The most that the job may cost, USD.")
    max_hours: Positive | None = Field(default=None, description="The longest that training may take, hours.")


class PricingIn(In):
    """Whose prices count."""

    purchases: Annotated[tuple[Purchase, ...], Field(min_length=1, max_length=2), AfterValidator(_once)] = Field(
        default=("on_demand", "spot"), description="Purchase models to price; options are ranked by the first."
    )
    os: Os = Field(default="linux", description="The operating system.")
    hours: Hours | None = Field(default=None, description="How long the VMs run, for the cost of the job.")
    hours_per_month: Annotated[Hours, Field(le=744)] = Field(default=Decimal(730), description="Hours a month.")
    spot_overhead: Annotated[Decimal, Field(ge=0, le=10, allow_inf_nan=False)] = Field(
        default=Decimal("0.1"), description="What interruptions add to a training on spot VMs, as a share."
    )
    as_of: Day | None = Field(default=None, description="The day whose prices count; default: today.")

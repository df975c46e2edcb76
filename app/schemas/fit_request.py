"""The body of POST /fit: resources or a workload, constraints, pricing and, instead of the catalog, a machine."""

from collections.abc import Collection
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from app.catalog.purchases import PURCHASE_MODELS, Purchase
from app.catalog.queries.params import (
    PRICED_OS,
    ContinentSet,
    CountrySet,
    Currency,
    Cursor,
    Day,
    GpuSet,
    Hours,
    LowerTextSet,
    Os,
    PlainText,
    ProviderSet,
    RegionSet,
    SizeRequirements,
    UsdAmount,
    optional,
    other_spellings,
    several,
)
from app.schemas.bodies import (
    Count,
    Fraction,
    In,
    NonNegative,
    Positive,
    contradiction,
    require_exactly_one,
)
from app.schemas.estimate_request import InferenceIn, ModelIn, ServingIn, TrainingIn

Nodes = Annotated[int, Field(ge=1, le=10_000)]


def _drop_duplicates(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


class ResourcesIn(In, SizeRequirements):
    """The resources that a VM must have, as in the parameters of GET /fit; a bound has either of its names."""

    @classmethod
    def allowed_names(cls) -> Collection[str]:
        """Return the names of the fields, and those of bounds after the field of a size that they bound."""
        return cls.model_fields.keys() | other_spellings(cls).keys()


class HardwareIn(In):
    """One machine, checked instead of the catalog; figures that are not given are not checked."""

    gpu: PlainText | None = optional("A GPU of GET /gpus by any name: `H100-SXM-80GB`.")
    gpus: Annotated[int, Field(ge=1, le=1024)] | None = optional(
        "GPUs of the machine; default: as many as the split needs, or 1."
    )
    memory_gib: Positive | None = optional("Memory of one GPU as marketed, GiB.")
    usable_gib: Positive | None = optional("Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: Positive | None = optional("Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: Positive | None = optional("Dense peak of one GPU in the type used, TFLOP/s.")
    compute_capability: Annotated[str, Field(pattern="^([0-9]{1,2}[.][0-9]|gfx[0-9a-f]{3,4})$")] | None = optional(
        "`8.0`, or `gfx942`; unknown: every type is taken to be supported."
    )
    scale_up_domain_gpus: Count | None = optional("GPUs that share NVLink; 1: PCIe only.")
    infiniband: bool | None = optional("Machines are joined by InfiniBand; default true.")
    network_gbps: Positive | None = optional(
        "Network of the machine, 10^9 bits/s; default 400 for each GPU, without InfiniBand 12.5."
    )
    host_memory_gib: Positive | None = optional("Memory of the machine, GiB.")
    local_disk_gib: Positive | None = optional("Local disks of the machine, GiB.")
    vcpus: Count | None = optional("vCPUs of the machine.")
    usd_per_hour: UsdAmount | None = optional("What the machine costs an hour, USD.")

    @property
    def memory_known(self) -> bool:
        """Whether the memory of its GPUs is given or can be looked up."""
        return any(value is not None for value in (self.gpu, self.memory_gib, self.usable_gib))


class ConstraintsIn(In):
    """Which sizes are checked (series, name, gpu, gpu_vendor), and what an option must meet (all other fields)."""

    series: LowerTextSet = several("Only these series, by id or name.")
    name: LowerTextSet = several("Only names that match a glob: `Standard_NC*_v5`.")
    gpu: GpuSet = several("Only these GPUs, by names or globs as GET /sizes takes them: `A100`, `*80GB*`.")
    gpu_vendor: PlainText | None = optional("Only GPUs of this maker.")
    regions: RegionSet = several("Priced in one of these.")
    available_in: RegionSet = several("Priced in all of these.")
    provider: ProviderSet = ()
    country: CountrySet = several("Priced in a region in one of these countries (ISO 3166-1).")
    continent: ContinentSet = several("Priced in a region on one of these continents.")
    min_nodes: Nodes = Field(default=1, description="The fewest VMs.")
    max_nodes: Nodes = Field(default=1, description="The most VMs; default 1, with serving 100.")
    utilization: Fraction | None = optional("Share of a GPU's memory that may be used; default 0.92, in training 0.95.")
    tp_in_nvlink: bool = Field(default=False, description="Layers are cut over GPUs that share NVLink only.")
    require_infiniband: bool | None = optional(
        "VMs that train together, or hold one replica together, have InfiniBand or another `fabric`; "
        "default: for training and with serving. With false they may use Ethernet."
    )
    allow_preview: bool = Field(default=True, description="Include sizes in preview.")
    allow_retiring: bool = Field(default=True, description="Include sizes with an announced retirement.")
    allow_legacy: bool = Field(default=False, description="Include GPUs for graphics, and GPUs older than Pascal.")
    verified_only: bool = Field(default=False, description="The vendor's own documents must name the size.")
    checkpoint_on_local_disk: bool = Field(default=False, description="A checkpoint must fit on the VM's local disk.")
    budget_usd_per_month: UsdAmount | None = optional("The most that all VMs may cost a month, USD.")
    budget_usd_per_job: UsdAmount | None = optional("The most that the job may cost, USD.")
    max_hours: Positive | None = optional("The longest that training may take, hours.")


class PricingIn(In):
    """The prices to use."""

    elsewhere = dict.fromkeys(("region", "regions", "location"), "constraints.regions")

    purchases: Annotated[
        tuple[Purchase, ...],
        Field(min_length=1, max_length=len(PURCHASE_MODELS)),
        AfterValidator(_drop_duplicates),
    ] = Field(default=("on_demand", "spot"), description="Purchase models to price; options are ranked by the first.")
    os: Os = Field(default="linux", description=PRICED_OS)
    hours: Hours | None = optional("How long the VMs run, for the cost of the job.")
    hours_per_month: Annotated[Hours, Field(le=744)] = Field(default=Decimal(730), description="Hours a month.")
    spot_overhead: Annotated[Decimal, Field(ge=0, le=10, allow_inf_nan=False)] | None = optional(
        "What interruptions add to a training on spot VMs, as a share, in place of computing it."
    )
    spot_evictions_per_hour: Annotated[NonNegative, Field(le=1)] | None = optional(
        "Probability that a spot VM is evicted within an hour; default 0.025."
    )
    spot_restart_minutes: Annotated[NonNegative, Field(le=10_000)] | None = optional(
        "From an eviction until the training goes on; default 10."
    )
    checkpoint_interval_minutes: Annotated[Positive, Field(le=1_000_000)] | None = optional(
        "Between two checkpoints on spot VMs; default: the best."
    )
    checkpoint_gb_per_s: Positive | None = optional(
        "Rate at which all VMs together write a checkpoint, 10^9 bytes/s; default 7.5."
    )
    checkpoint_usd_per_gb_month: Annotated[NonNegative, Field(le=1000)] | None = optional(
        "Price of the storage of checkpoints, USD for 10^9 bytes a month; default 0.02."
    )
    checkpoints_kept: Annotated[int, Field(ge=1, le=10_000)] | None = optional("Checkpoints that are kept; default 2.")
    as_of: Day | None = optional("The day whose prices are used; default: today.")
    known_at: Day | None = optional(
        "Prices as the catalog knew them at the end of this day; default: as it knows them now."
    )
    currency: Currency | None = optional(
        "Give costs in this currency, too (ISO 4217), by the European Central Bank's reference rate of the "
        "day whose prices are used; USD at the rate 1. Budgets and order stay in USD."
    )


_NO_CONSTRAINTS, _USUAL_PRICING = ConstraintsIn.model_construct(), PricingIn.model_construct()
"""Defaults of `FitIn`, not validated: their validators would be built at the start of every worker, in 6 ms."""

Sort = Literal["cost_per_hour", "cost_per_job", "cost_per_1m_tokens", "time", "headroom", "waste", "nodes"]
Include = Literal["rejected", "assumptions", "workload"]


class FitIn(ModelIn):
    """What has to fit: exactly one of resources, inference and training."""

    resources: ResourcesIn | None = optional("The resources of a VM.")
    inference: InferenceIn | None = optional("How the model is served.")
    training: TrainingIn | None = optional("How the model is trained.")
    serving: ServingIn | None = optional(
        "Load and targets of a service, in place of inference.concurrency; inference may be left out."
    )
    hardware: HardwareIn | None = optional("One machine, instead of the catalog.")
    constraints: ConstraintsIn = Field(default=_NO_CONSTRAINTS, description="What an option must meet.")
    pricing: PricingIn = Field(default=_USUAL_PRICING, description="Which prices are used, and for how many hours.")
    sort: Sort | None = optional(
        "The order of options; unknown prices come last. Default: cost_per_job where training.tokens or "
        "training.gpu_hours is given, else cost_per_hour."
    )
    limit: Annotated[int, Field(ge=1, le=500)] = Field(default=10, description="The most options to return.")
    cursor: Cursor | None = optional("`next_cursor` of the page before; belongs to the same question.")
    include: Annotated[tuple[Include, ...], AfterValidator(lambda names: tuple(sorted(set(names))))] = several(
        "`rejected`: sizes that do not fit, at most 2,000; `assumptions`; `workload`: the architecture."
    )

    @property
    def order(self) -> Sort:
        """Return the order of options: as given, else by the cost of a job of known length, or of an hour."""
        timed = self.training is not None and (self.training.tokens, self.training.gpu_hours) != (None, None)
        return self.sort or ("cost_per_job" if timed else "cost_per_hour")

    @model_validator(mode="after")
    def _one_use(self) -> Self:
        if self.serving is None:
            require_exactly_one(self, "resources", "inference", "training")
        elif others := [name for name in ("resources", "training") if getattr(self, name) is not None]:
            raise contradiction(f"serving is of a model that is served, and {' and '.join(others)} is given")
        if self.resources is not None:
            # Fields about models cannot be given with resources.
            beside = {
                name for name in ("model", "architecture", "config", "hardware") if getattr(self, name) is not None
            }
            beside |= {f"constraints.{name}" for name in self.constraints.model_fields_set - _RESOURCE_CONSTRAINTS}
            if beside:
                raise contradiction(f"{', '.join(sorted(beside))} cannot be given with resources")
            if self.sort in {"cost_per_1m_tokens", "time"}:
                raise contradiction(f"sort={self.sort} is for inference and training only")
            if self.sort == "cost_per_job" and self.pricing.hours is None:
                raise contradiction("sort=cost_per_job needs pricing.hours")
        elif self.sort == "waste":
            raise contradiction("sort=waste is for resources only")
        if self.hardware is not None and _OF_THE_CATALOG & self.constraints.model_fields_set:
            raise contradiction(
                "constraints.regions, available_in, provider, country and continent are about the catalog; "
                "they cannot be given with hardware"
            )
        return self


_OF_THE_CATALOG = {"regions", "available_in", "provider", "country", "continent"}
_RESOURCE_CONSTRAINTS = {
    *("series", "name", "gpu", "gpu_vendor", *_OF_THE_CATALOG, "max_nodes", "allow_preview"),
    *("allow_retiring", "verified_only", "budget_usd_per_month"),
}
"""The constraints that apply to resources, too."""

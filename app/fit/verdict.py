"""Sizes as fits compare them, and verdicts on them: options with headroom and cost, rejections with every failure.

Also the checks that apply to a size whatever the job (status, region, price and budget), and those of a job that needs
amounts of resources: vCPUs, memory, GPUs, network.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import ceil
from operator import add
from typing import TYPE_CHECKING

from app.fit.costs import HOURS_PER_MONTH, TERMS, format_amount, paid_hours, round_product
from app.fit.formulas.quantities import Figure
from app.nearest import join_with_or

if TYPE_CHECKING:  # else answers without a model would load the arithmetic of training
    from app.fit.formulas.training_speed import Interruptions

ORDERABLE = frozenset({"preview", "current", "retiring"})
"""Statuses of sizes that can be ordered."""


def is_part_of_gpu(gpus: Fraction | None) -> bool:
    """Return whether a number of GPUs is known, more than none and less than one."""
    return gpus is not None and 0 < gpus < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustedPrice:
    """How a price differs from the list price: that of one VM, USD an hour, and the names of the rules that apply."""

    list_usd_per_hour: Decimal
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeFacts:
    """What every verdict on a size needs to know of it."""

    name: str
    status: str
    verified: bool
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm(SizeFacts):
    """One VM size. Memory and disk are GiB, network Gbps, prices USD an hour; None is unknown.

    `gpu_memory_gib` is of the whole VM; `gpu_memory_gib_on_one_gpu` of one GPU, or of the slice of a fractional GPU.
    """

    gpus: Fraction | None = None
    gpu_memory_gib: float | None = None
    gpu_memory_gib_on_one_gpu: float | None = None
    vcpus: int | None = None
    memory_gib: float | None = None
    local_disk_gib: float | None = None
    network_gbps: float | None = None
    infiniband_gbps: float | None = None
    traits: Mapping[str, bool | str | None] = field(default_factory=dict)
    region: str | None = None
    in_every_region: bool = True
    usd_per_hour: Mapping[str, Decimal | None] = field(default_factory=dict)
    as_of: Mapping[str, date | None] = field(default_factory=dict)
    approximate_date: Mapping[str, bool | None] = field(default_factory=dict)
    unusual_price: frozenset[str] = frozenset()
    disputed_price: frozenset[str] = frozenset()
    adjustment: Mapping[str, AdjustedPrice | None] = field(default_factory=dict)
    formula: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def fractional(self) -> bool:
        """Whether the VM has only a part of a GPU, which cannot be pooled with other parts."""
        return is_part_of_gpu(self.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeConstraints:
    """Constraints on every size, whatever the job: statuses, regions, number of VMs, price and budget."""

    statuses: frozenset[str] = ORDERABLE
    regions: tuple[str, ...] = ()
    max_nodes: int = 1
    purchase: str = "on_demand"
    hours: Decimal | None = None
    hours_per_month: Decimal = Decimal(730)
    budget_usd_per_month: Decimal | None = None
    verified_only: bool = False
    today: date

    def usd_per_month(self, usd_per_hour: Decimal, purchase: str) -> Decimal:
        """Return the monthly cost of VMs at an hourly price; a commitment is billed for all hours."""
        return round_product(usd_per_hour, paid_hours(purchase, self.hours_per_month))


PERCENT_DECIMALS = 6
"""Decimal places to which percentages are rounded."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A constraint that a size does not meet; `required` and `available` are None where unknown or not an amount."""

    constraint: str
    code: str
    detail: str
    required: float | None = None
    available: float | None = None
    unit: str | None = None

    @property
    def shortfall(self) -> float | None:
        """The missing amount, in the unit of the constraint."""
        if self.required is None or self.available is None:
            return None
        return abs(self.required - self.available)

    @property
    def share_missing(self) -> float:
        """The shortfall as a share of what is required: 0 to 1; 1 where it is not about an amount."""
        if self.required is None or self.available is None:
            return 1.0
        more_is_better = self.required > self.available
        whole = self.required if more_is_better else self.available
        return abs(self.required - self.available) / whole if whole else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """What all nodes have of a resource beyond what is required; of each node where the resource does not pool."""

    resource: str
    unit: str
    required: float
    available: float

    @property
    def percent(self) -> float:
        """The spare part of what is available: 100 x (available - required) / available.

        Computed exactly and rounded once, so that options with the same headroom compare equal.
        """
        # Floats as they print: 0.1 is a tenth here, so equal inputs give equal percentages.
        required, available = Decimal(repr(self.required)), Decimal(repr(self.available))
        return float(round(100 * (available - required) / available, PERCENT_DECIMALS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of all nodes under one purchase model; None where the price, or the job's hours, are unknown.

    nodes x price per hour, exactly, and rounded once. A month has the requested number of hours; a reservation or
    savings plan is paid for its `committed_hours_per_month`, used or not, of which a job is charged its own. The price
    is the one that is paid; its `adjustment`, of one VM, is None where it is the list price, and its `formula` None
    where a list states it.
    """

    usd_per_hour: Decimal | None = None
    usd_per_month: Decimal | None = None
    usd_per_job: Decimal | None = None
    as_of: date | None = None
    price_age_days: int | None = None
    approximate_date: bool | None = None
    adjustment: AdjustedPrice | None = None
    formula: str | None = None
    committed_hours_per_month: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A size that fits, and the number of nodes."""

    vm: Vm
    nodes: int
    headrooms: tuple[Headroom, ...]
    costs: dict[str, Cost]
    warnings: tuple[str, ...]

    @property
    def limiting(self) -> Headroom | None:
        """The resource with the least headroom; None where no amount was requested."""
        return min(self.headrooms, key=lambda headroom: headroom.percent, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A size that does not fit, with all failures, the largest shortfall first."""

    vm: SizeFacts
    failures: tuple[Failure, ...]

    @property
    def size(self) -> str:
        """The name of the size."""
        return self.vm.name

    @property
    def provider(self) -> str | None:
        """Who sells the size."""
        return self.vm.provider

    @property
    def status(self) -> str:
        """The status of the size."""
        return self.vm.status


def worst_first(failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """Return failures in the order in which a rejection has them."""
    return tuple(sorted(failures, key=lambda failure: (-failure.share_missing, failure.constraint)))


NEAREST_MISSES = 3
MAX_REJECTED = 2_000
"""The most rejected sizes that are listed: the nearest misses."""


def miss_distance(failures: Sequence[Failure]) -> tuple[float, int, float]:
    """Return the sort key of what a size fails: the largest shortfall, then the number of failures, then their sum."""
    shares = [failure.share_missing for failure in failures]
    # Added one by one, the largest first: `sum` rounds in another way from Python 3.12 on.
    return (max(shares), len(shares), reduce(add, shares))


OLD_PRICE_DAYS = 366


def check_eligibility(vm: Vm, constraints: SizeConstraints) -> Iterator[Failure]:
    """Yield the failures of a size that cannot be ordered, or not in the requested regions."""
    if vm.status not in constraints.statuses:
        code = vm.status.upper() if vm.status in ("retired", "withdrawn") else "STATUS"
        yield Failure("status", code, f"is {vm.status}")
    if constraints.regions and vm.region is None:
        yield Failure("region", "NOT_IN_REGION", f"has no price in {join_with_or(constraints.regions)}")
    if not vm.in_every_region:
        detail = "has no price in one of the regions where it must have one"
        yield Failure("available_in", "NOT_IN_REGION", detail)
    if constraints.verified_only and not vm.verified:
        yield Failure("verified_only", "UNVERIFIED", "only third parties name it")


def compute_cost(vm: Vm, purchase: str, nodes: int, constraints: SizeConstraints) -> Cost:
    """Return the cost of `nodes` VMs under a purchase model: nodes x price per hour, x hours."""
    price = vm.usd_per_hour[purchase]
    if price is None:
        return Cost()
    hourly, as_of = nodes * price, vm.as_of.get(purchase)
    return Cost(
        usd_per_hour=hourly,
        usd_per_month=constraints.usd_per_month(hourly, purchase),
        usd_per_job=round_product(hourly, constraints.hours) if constraints.hours is not None else None,
        as_of=as_of,
        price_age_days=(constraints.today - as_of).days if as_of is not None else None,
        approximate_date=vm.approximate_date.get(purchase),
        adjustment=vm.adjustment.get(purchase),
        formula=vm.formula.get(purchase),
        committed_hours_per_month=HOURS_PER_MONTH if purchase in TERMS else None,
    )


def check_budget(usd_per_month: Decimal | None, constraints: SizeConstraints) -> Iterator[Failure]:
    """Yield a failure where the cost of a month is over the budget or unknown."""
    budget = constraints.budget_usd_per_month
    if budget is None:
        return
    if usd_per_month is None:
        yield unknown_price_failure("budget_usd_per_month", constraints)
    elif usd_per_month > budget:
        detail = f"costs {usd_per_month:.2f} USD a month, the budget is {budget:.2f}"
        yield Failure("budget_usd_per_month", "BUDGET", detail, float(usd_per_month), float(budget), "USD")


def unknown_price_failure(constraint: str, constraints: SizeConstraints) -> Failure:
    """Return the failure of an unknown price: it meets no budget, as an unknown amount meets no need."""
    where = f" in {join_with_or(constraints.regions)}" if constraints.regions else ""
    detail = f"no source says its {constraints.purchase.replace('_', '-')} price{where}, so it meets no budget"
    return Failure(constraint, "NO_PRICE", detail)


def warning_codes(vm: Vm, constraints: SizeConstraints) -> tuple[str, ...]:
    """Return the warning codes of an option; a price is old after a year, or where its source has no date."""
    as_of, undated = vm.as_of.get(constraints.purchase), vm.approximate_date.get(constraints.purchase)
    raised = {
        "NO_PRICE": vm.usd_per_hour.get(constraints.purchase) is None,
        "OLD_PRICE": as_of is not None and ((constraints.today - as_of).days > OLD_PRICE_DAYS or undated is True),
        "UNUSUAL_PRICE": constraints.purchase in vm.unusual_price,
        "DISPUTED_PRICE": constraints.purchase in vm.disputed_price,
        "COMMITMENT": constraints.purchase in TERMS and vm.usd_per_hour.get(constraints.purchase) is not None,
        "PREVIEW": vm.status == "preview",
        "RETIRING": vm.status == "retiring",
        "WITHDRAWN": vm.status == "withdrawn",
        "RETIRED": vm.status == "retired",
        "UNVERIFIED": not vm.verified,
    }
    return tuple(code for code, holds in raised.items() if holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionCost:
    """What an option costs by one purchase model; per request of a service only."""

    cost: Cost
    per_job: Figure | None
    per_million_tokens: Figure | None
    interruptions: "Interruptions | None" = None
    per_request: Figure | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """A constraint on an amount: `pooled` amounts add up over nodes, others each node must have by itself.

    `figure` is the field of a VM that it is about.
    """

    name: str
    code: str
    label: str
    unit: str
    figure: str
    pooled: bool = True
    on_gpus: bool = False

    def of(self, vm: Vm) -> float | Fraction | None:
        """Return the amount that a VM has."""
        amount: float | Fraction | None = getattr(vm, self.figure)
        return amount

    @property
    def resource(self) -> str:
        """The resource's name in responses: `gpu_memory` for `min_gpu_mem`."""
        return self.name.removeprefix("min_").replace("gpu_mem", "gpu_memory")


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("min_gpu_mem", "GPU_MEMORY_TOTAL", "GPU memory", "GiB", "gpu_memory_gib", on_gpus=True),
    Quantity("min_gpus", "GPU_COUNT", "GPUs", "count", "gpus", on_gpus=True),
    Quantity("min_vcpus", "VCPU", "vCPUs", "count", "vcpus"),
    Quantity("min_memory", "RAM", "memory", "GiB", "memory_gib"),
    Quantity("min_local_disk", "LOCAL_DISK", "local disk", "GiB", "local_disk_gib"),
    Quantity(
        "min_gpu_mem_per_gpu",
        "GPU_MEMORY_PER_GPU",
        "GPU memory on one GPU",
        "GiB",
        "gpu_memory_gib_on_one_gpu",
        pooled=False,
    ),
    Quantity("min_network_gbps", "NETWORK", "network", "Gbps", "network_gbps", pooled=False),
    Quantity("min_infiniband_gbps", "INFINIBAND", "InfiniBand", "Gbps", "infiniband_gbps", pooled=False),
)
"""Every amount that can be required; amounts on GPUs do not pool where a VM has only part of a GPU."""

TRAIT_CODES: dict[str, str] = {"infiniband": "NO_INFINIBAND", "nvlink": "NO_NVLINK", "arch": "ARCH"}
"""The failure code of a trait; any other trait is a feature flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceNeeds(SizeConstraints):
    """What a job needs of its VMs besides the common constraints: amounts by constraint name, traits by name."""

    amounts: Mapping[str, float]
    traits: Mapping[str, bool | str]


def evaluate_vm(vm: Vm, needs: ResourceNeeds) -> Option | Rejection:
    """Check one size against the needs; all constraints are evaluated, not only up to the first failure."""
    failures = find_failures(vm, needs)
    if failures:
        return Rejection(vm=vm, failures=worst_first(failures))
    nodes = nodes_needed(vm, needs)
    costs = {purchase: compute_cost(vm, purchase, nodes, needs) for purchase in vm.usd_per_hour}
    usd_per_month = costs[needs.purchase].usd_per_month if needs.purchase in costs else None
    over_budget = [*check_budget(usd_per_month, needs)]
    if over_budget:
        return Rejection(vm=vm, failures=worst_first(over_budget))
    headrooms = tuple(headrooms_of(vm, nodes, needs))
    return Option(vm=vm, nodes=nodes, headrooms=headrooms, costs=costs, warnings=warning_codes(vm, needs))


def find_failures(vm: Vm, needs: ResourceNeeds) -> list[Failure]:
    """Return everything that a size lacks but for its price."""
    return [*check_eligibility(vm, needs), *_check_traits(vm, needs), *_check_amounts(vm, needs)]


def requested_quantities(needs: ResourceNeeds) -> Iterator[Quantity]:
    """Yield the amounts that the needs require more than nothing of."""
    return (quantity for quantity in QUANTITIES if needs.amounts.get(quantity.name))


def _pools(quantity: Quantity, vm: Vm) -> bool:
    """Return whether an amount adds up over nodes; parts of a GPU do not make a GPU."""
    return quantity.pooled and not (quantity.on_gpus and vm.fractional)


def nodes_needed(vm: Vm, needs: ResourceNeeds) -> int:
    """Return the least number of nodes that satisfies every pooled amount, from 1 to max_nodes."""
    nodes = 1
    for quantity in requested_quantities(needs):
        available = quantity.of(vm)
        if available and _pools(quantity, vm):
            # Fractions: a third of a GPU, three times, is exactly one.
            nodes = max(nodes, ceil(Fraction(needs.amounts[quantity.name]) / Fraction(available)))
    return min(nodes, needs.max_nodes)


def _available(quantity: Quantity, vm: Vm, nodes: int) -> float | None:
    per_vm = quantity.of(vm)
    if per_vm is None:
        return None
    return float(Fraction(per_vm) * (nodes if _pools(quantity, vm) else 1))


def _check_amounts(vm: Vm, needs: ResourceNeeds) -> Iterator[Failure]:
    """Check that as many VMs as are allowed have each amount together, or each of them where it does not pool."""
    for quantity in requested_quantities(needs):
        required, available = needs.amounts[quantity.name], _available(quantity, vm, needs.max_nodes)
        if available is not None and available >= required:
            continue
        code, unit = quantity.code, "" if quantity.unit == "count" else f"{quantity.unit} of "
        where = f"{needs.max_nodes} nodes have" if needs.max_nodes > 1 and quantity.pooled else "has"
        finding = "and no source says what it has" if available is None else f"{where} {available:g}"
        detail = f"needs {required:g} {unit}{quantity.label}, {finding}"
        if vm.fractional and quantity.on_gpus and needs.max_nodes > 1:
            code = "FRACTIONAL_GPU"
            if available is not None:
                detail = f"has {available:g} {unit}{quantity.label} on part of a GPU, and parts do not pool"
        yield Failure(quantity.name, code, detail, required, available, quantity.unit)


def _check_traits(vm: Vm, needs: ResourceNeeds) -> Iterator[Failure]:
    """Yield the failures of traits that a VM does not have, or that no source states."""
    for name, wanted in needs.traits.items():
        actual = vm.traits.get(name)
        if actual != wanted:
            finding = "no source says" if actual is None else f"it is {str(actual).lower()}"
            detail = f"{name} must be {str(wanted).lower()}, {finding}"
            yield Failure(name, TRAIT_CODES.get(name, "FEATURE"), detail)


def headrooms_of(vm: Vm, nodes: int, needs: ResourceNeeds) -> Iterator[Headroom]:
    """Yield what a number of VMs have of each required amount beyond it; the amounts must be known."""
    for quantity in requested_quantities(needs):
        available = _available(quantity, vm, nodes)
        assert available is not None  # noqa: S101  # an unknown amount was rejected before
        required = needs.amounts[quantity.name]
        yield Headroom(resource=quantity.resource, unit=quantity.unit, required=required, available=available)


def unused_gpu_memory_gib(vm: Vm, nodes: int, needs: ResourceNeeds) -> float | None:
    """Return the GPU memory of all nodes that the job leaves unused, GiB; None where none is required, or unknown."""
    required, per_vm = needs.amounts.get("min_gpu_mem"), vm.gpu_memory_gib
    return per_vm * nodes - required if required and per_vm is not None else None


def unused_gpu_memory_percent(vm: Vm, nodes: int, needs: ResourceNeeds) -> float | None:
    """Return what the job leaves unused of the GPU memory of all nodes, percent; None as for the amount."""
    unused, per_vm = unused_gpu_memory_gib(vm, nodes, needs), vm.gpu_memory_gib
    return round(100 * unused / (per_vm * nodes), 2) if unused is not None and per_vm else None


_LABELS = {quantity.resource: quantity.label for quantity in QUANTITIES}


def price_place(vm: Vm, purchase: str) -> str:
    """Return where a price applies, and whether it is computed: ` in oci (computed)`."""
    where = f" in {vm.region}" if vm.region else ""
    return f"{where} (computed)" if vm.formula.get(purchase) else where


def explain_option(option: Option, needs: ResourceNeeds) -> str:
    """Describe in a sentence why an option fits: its tightest resource, and its cost."""
    nodes = f"{option.nodes} VMs" if option.nodes > 1 else "1 VM"
    limit, tightest = "", option.limiting
    if tightest is not None:
        unit = "" if tightest.unit == "count" else f" {tightest.unit}"
        having = f"{tightest.available:g}{unit} {_LABELS[tightest.resource]} ({tightest.percent:.0f}% to spare)"
        limit = f": needs {tightest.required:g} of {having}"
    cost, model = option.costs.get(needs.purchase), needs.purchase.replace("_", "-")
    if cost is None or cost.usd_per_hour is None or cost.usd_per_month is None:
        return f"Fits on {nodes}{limit}; its {model} price is unknown."
    where, month = price_place(option.vm, needs.purchase), f"{cost.usd_per_month:.2f} USD a month"
    return f"Fits on {nodes}{limit}; {format_amount(cost.usd_per_hour)} USD an hour {model}{where}, {month}."

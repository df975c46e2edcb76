"""Fit of a job that needs amounts of resources (vCPUs, memory, GPUs, network): verdict on each size, and ranking."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from app.fit.verdict import (
    Failure,
    Headroom,
    Option,
    Rejection,
    SizeConstraints,
    Vm,
    check_budget,
    check_eligibility,
    compute_cost,
    warning_codes,
    worst_first,
)


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
    headrooms = tuple(headroom_of(quantity, vm, nodes, needs) for quantity in requested_quantities(needs))
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
        parts_of_gpu = vm.fractional and quantity.on_gpus and needs.max_nodes > 1
        yield Failure(
            constraint=quantity.name,
            code="FRACTIONAL_GPU" if parts_of_gpu else quantity.code,
            required=required,
            available=available,
            unit=quantity.unit,
            detail=_describe_shortfall(quantity, vm, required, available, needs.max_nodes),
        )


def _describe_shortfall(quantity: Quantity, vm: Vm, required: float, available: float | None, nodes: int) -> str:
    unit = "" if quantity.unit == "count" else f"{quantity.unit} of "
    if available is None:
        return f"needs {required:g} {unit}{quantity.label}, and no source says what it has"
    if vm.fractional and quantity.on_gpus and nodes > 1:
        return f"has {available:g} {unit}{quantity.label} on part of a GPU, and parts do not pool"
    where = f"{nodes} nodes have" if nodes > 1 and quantity.pooled else "has"
    return f"needs {required:g} {unit}{quantity.label}, {where} {available:g}"


def _check_traits(vm: Vm, needs: ResourceNeeds) -> Iterator[Failure]:
    """Yield the failures of traits that a VM does not have, or that no source states."""
    for name, wanted in needs.traits.items():
        actual = vm.traits.get(name)
        if actual == wanted:
            continue
        finding = "no source says" if actual is None else f"it is {_format(actual)}"
        yield Failure(name, TRAIT_CODES.get(name, "FEATURE"), f"{name} must be {_format(wanted)}, {finding}")


def _format(value: bool | str) -> str:
    return str(value).lower()


def headroom_of(quantity: Quantity, vm: Vm, nodes: int, needs: ResourceNeeds) -> Headroom:
    """Return what a number of VMs have of an amount beyond what is required; the amount must be known."""
    available = _available(quantity, vm, nodes)
    assert available is not None  # noqa: S101  # an unknown amount was rejected before
    return Headroom(
        resource=quantity.resource,
        unit=quantity.unit,
        required=needs.amounts[quantity.name],
        available=available,
    )


def unused_gpu_memory_gib(vm: Vm, nodes: int, needs: ResourceNeeds) -> float | None:
    """Return the GPU memory of all nodes that the job leaves unused, GiB; None where none is required, or unknown."""
    required, per_vm = needs.amounts.get("min_gpu_mem"), vm.gpu_memory_gib
    return per_vm * nodes - required if required and per_vm is not None else None


def unused_gpu_memory_percent(vm: Vm, nodes: int, needs: ResourceNeeds) -> float | None:
    """Return what the job leaves unused of the GPU memory of all nodes, percent; None as for the amount."""
    unused, per_vm = unused_gpu_memory_gib(vm, nodes, needs), vm.gpu_memory_gib
    return round(100 * unused / (per_vm * nodes), 2) if unused is not None and per_vm else None


_LABELS = {quantity.resource: quantity.label for quantity in QUANTITIES}


def explain_option(option: Option, needs: ResourceNeeds) -> str:
    """Describe in a sentence why an option fits: its tightest resource, and its cost."""
    nodes = f"{option.nodes} VMs" if option.nodes > 1 else "1 VM"
    limit = f": {_describe_limit(option.limiting)}" if option.limiting else ""
    return f"Fits on {nodes}{limit}; {_describe_price(option, needs)}."


def _describe_limit(headroom: Headroom) -> str:
    unit = "" if headroom.unit == "count" else f" {headroom.unit}"
    return (
        f"needs {headroom.required:g} of {headroom.available:g}{unit} {_LABELS[headroom.resource]}"
        f" ({headroom.percent:.0f}% to spare)"
    )


def _describe_price(option: Option, needs: ResourceNeeds) -> str:
    cost = option.costs.get(needs.purchase)
    model = needs.purchase.replace("_", "-")
    if cost is None or cost.usd_per_hour is None or cost.usd_per_month is None:
        return f"its {model} price is unknown"
    where = f" in {option.vm.region}" if option.vm.region else ""
    return f"{cost.usd_per_hour.normalize():f} USD an hour {model}{where}, {cost.usd_per_month:.2f} USD a month"

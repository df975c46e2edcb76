"""Whether a size fits, on how many nodes, with how much to spare; else every constraint that it fails."""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

from app.fit.resources.needs import QUANTITIES, TRAIT_CODES, Needs, Quantity
from app.fit.standing import cost_of, over_budget, standing, warnings
from app.fit.verdict import Failure, Headroom, Option, Rejection, plain_failure
from app.fit.vm import Vm


def judge_vm(vm: Vm, needs: Needs) -> Option | Rejection:
    """Judge one size against the needs; every constraint is evaluated, not only the first that fails."""
    nodes = _nodes(vm, needs)
    failures = [*standing(vm, needs), *_traits(vm, needs), *_amounts(vm, needs)]
    costs = {purchase: cost_of(vm, purchase, nodes, needs) for purchase in vm.usd_per_hour}
    month = costs[needs.purchase].usd_per_month if needs.purchase in costs else None
    if not failures:
        failures += over_budget(month, needs)
    if failures:
        ordered = sorted(failures, key=lambda failure: (-failure.share_missing, failure.constraint))
        return Rejection(vm=vm, failures=tuple(ordered))
    headrooms = tuple(_headroom(quantity, vm, nodes, needs) for quantity in _asked(needs))
    return Option(vm=vm, nodes=nodes, headrooms=headrooms, costs=costs, warnings=warnings(vm, needs))


def _asked(needs: Needs) -> Iterator[Quantity]:
    return (quantity for quantity in QUANTITIES if needs.amounts.get(quantity.name))


def _pools(quantity: Quantity, vm: Vm) -> bool:
    """Amounts add up over nodes, but parts of a GPU do not make a GPU."""
    return quantity.pooled and not (quantity.on_gpus and vm.fractional)


def _nodes(vm: Vm, needs: Needs) -> int:
    """The smallest number of nodes that satisfies every pooled amount, at least 1 and at most max_nodes."""
    wanted = [
        ceil(Fraction(needs.amounts[quantity.name]) / Fraction(available))
        for quantity in _asked(needs)
        if _pools(quantity, vm) and (available := quantity.of(vm))
    ]
    return min(max(wanted, default=1), needs.max_nodes)


def _available(quantity: Quantity, vm: Vm, nodes: int) -> float | None:
    one = quantity.of(vm)
    if one is None:
        return None
    return float(Fraction(one) * (nodes if _pools(quantity, vm) else 1))


def _amounts(vm: Vm, needs: Needs) -> Iterator[Failure]:
    for quantity in _asked(needs):
        required, available = needs.amounts[quantity.name], _available(quantity, vm, needs.max_nodes)
        if available is not None and available >= required:
            continue
        parts = vm.fractional and quantity.on_gpus and needs.max_nodes > 1
        yield Failure(
            constraint=quantity.name,
            code="FRACTIONAL_GPU" if parts else quantity.code,
            required=required,
            available=available,
            unit=quantity.unit,
            detail=_short(quantity, vm, required, available, needs.max_nodes),
        )


def _short(quantity: Quantity, vm: Vm, required: float, available: float | None, nodes: int) -> str:
    unit = "" if quantity.unit == "count" else f"{quantity.unit} of "
    if available is None:
        return f"needs {required:g} {unit}{quantity.label}, and no source says what it has"
    if vm.fractional and quantity.on_gpus and nodes > 1:
        return f"has {available:g} {unit}{quantity.label} on part of a GPU, and parts do not pool"
    where = f"{nodes} nodes have" if nodes > 1 and quantity.pooled else "has"
    return f"needs {required:g} {unit}{quantity.label}, {where} {available:g}"


def _traits(vm: Vm, needs: Needs) -> Iterator[Failure]:
    for name, wanted in needs.traits.items():
        actual = vm.traits.get(name)
        if actual == wanted:
            continue
        told = "no source says" if actual is None else f"it is {_said(actual)}"
        yield plain_failure(name, TRAIT_CODES.get(name, "FEATURE"), f"{name} must be {_said(wanted)}, {told}")


def _said(value: bool | str) -> str:
    return str(value).lower()


def _headroom(quantity: Quantity, vm: Vm, nodes: int, needs: Needs) -> Headroom:
    available = _available(quantity, vm, nodes)
    assert available is not None  # noqa: S101  # an unknown amount was rejected before
    return Headroom(
        resource=quantity.resource,
        unit=quantity.unit,
        required=needs.amounts[quantity.name],
        available=available,
    )

"""Similarity of sizes: a distance from 0 (the same) to 1 (entirely different), as a weighted mean of terms.

Also exact differences of two figures, which comparisons of sizes share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import log2
from typing import Any

from app.fit.costs import Number, to_exact
from app.fit.verdict import AdjustedPrice


def _ratio(number: Number) -> tuple[int, int]:
    """Return the numerator and denominator of `to_exact`, which takes ten times as long to compute with."""
    return Decimal(repr(number)).as_integer_ratio() if isinstance(number, float) else number.as_integer_ratio()


def difference(baseline: Number | None, value: Number | None) -> float | None:
    """Return value - baseline, in their unit; None where one is unknown."""
    if baseline is None or value is None:
        return None
    (above, below), (base_above, base_below) = _ratio(value), _ratio(baseline)
    return (above * base_below - base_above * below) / (below * base_below)


def difference_percent(baseline: Number | None, value: Number | None) -> float | None:
    """Return 100 x (value - baseline) / baseline, to two digits; None where one is unknown or the baseline is zero.

    It is exact, and rounded once, half to even.
    """
    if baseline is None or value is None or baseline == 0:
        return None
    (above, below), (base_above, base_below) = _ratio(value), _ratio(baseline)
    hundredths, rest = divmod(10_000 * (above * base_below - base_above * below), below * base_above)
    twice, whole = 2 * abs(rest), abs(below * base_above)
    return (hundredths + (twice > whole or (twice == whole and hundredths % 2 == 1))) / 100


def usd_per_unit(usd_per_hour: Number | None, amount: Number | None) -> float | None:
    """Return the price per unit of a resource: usd_per_hour / amount; None where one is unknown or the amount zero."""
    if usd_per_hour is None or amount is None or amount == 0:
        return None
    return float(to_exact(usd_per_hour) / to_exact(amount))


def total_of_gpus(gpus: Fraction | None, of_one: Number | None) -> float | None:
    """Return a figure for all GPUs of a VM: gpus x of_one; a fraction of a GPU contributes its fraction."""
    return None if gpus is None or of_one is None else float(gpus * to_exact(of_one))


MAX_DOUBLINGS = 3.0
"""Doublings or halvings from which two amounts count as entirely different: eight times, or an eighth."""

UNKNOWN_DISTANCE = 1 / 2
"""Distance of an unknown value: half way, so that missing data neither wins nor loses."""


DISTANCE_DIGITS = 4
"""Digits to which distances are rounded; sizes whose rounded distances are equal rank as equally near."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTraits:
    """The name and compared attributes of a size; None is unknown. `adjustment` is None for a list price."""

    name: str
    status: str
    verified: bool
    series: str | None
    gpu_id: str | None
    gpu_model: str | None
    gpu_family: str | None
    gpu_vendor: str | None
    gpus: Fraction | None
    gpu_memory_gib: float | None
    vcpus: int | None
    memory_gib: float | None
    region: str | None
    usd_per_hour: Decimal | None
    arch: str | None = None
    cpu_vendor: str | None = None
    cpu_model: str | None = None
    local_disk_gib: float | None = None
    uncached_disk_iops: int | None = None
    network_mbps: int | None = None
    provider: str | None = None
    adjustment: AdjustedPrice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceTerm:
    """One term of the distance: the attribute, its unit (None for what is no amount) and its weight.

    `other_text` is the distance of two texts that differ: 1 where nothing is alike. An amount that is less is as good
    where `less_is_fine`.
    """

    name: str
    unit: str | None
    weight: int
    get: Callable[[SizeTraits], Number | str | None]
    other_text: float = 1.0
    less_is_fine: bool = False


DISTANCE_TERMS = (
    DistanceTerm(name="gpu_class", unit=None, weight=4, get=lambda _: None),
    DistanceTerm(name="gpu_memory_gib", unit="GiB", weight=3, get=lambda size: size.gpu_memory_gib),
    DistanceTerm(name="gpu_count", unit="count", weight=2, get=lambda size: size.gpus),
    DistanceTerm(name="usd_per_hour", unit="USD/h", weight=2, get=lambda size: size.usd_per_hour, less_is_fine=True),
    DistanceTerm(name="arch", unit=None, weight=2, get=lambda size: size.arch),
    DistanceTerm(name="vcpus", unit="count", weight=2, get=lambda size: size.vcpus),
    DistanceTerm(name="memory_gib", unit="GiB", weight=2, get=lambda size: size.memory_gib),
    DistanceTerm(name="cpu_vendor", unit=None, weight=1, get=lambda size: size.cpu_vendor),
    # Vendors name the same processor in several ways, and another model of a maker runs the same programs.
    DistanceTerm(name="cpu_model", unit=None, weight=1, get=lambda size: size.cpu_model, other_text=1 / 3),
    DistanceTerm(name="local_disk_gib", unit="GiB", weight=1, get=lambda size: size.local_disk_gib),
    DistanceTerm(name="uncached_disk_iops", unit="IOPS", weight=1, get=lambda size: size.uncached_disk_iops),
    DistanceTerm(name="network_mbps", unit="Mbps", weight=1, get=lambda size: size.network_mbps),
)
"""The terms of the distance."""

GPU_CLASSES: tuple[tuple[Callable[[SizeTraits], str | None], float, str], ...] = (
    (lambda size: size.gpu_id, 0.0, "the same GPU"),
    (lambda size: size.gpu_family, 1 / 3, "another GPU of the same family"),
    (lambda size: size.gpu_vendor, 2 / 3, "another family of GPUs of the same vendor"),
)
"""What two GPUs can have in common, closest first: the attribute, their distance, and its description."""

_OTHER_VENDOR = (1.0, "GPUs of another vendor")
_UNKNOWN_GPU = (UNKNOWN_DISTANCE, "unknown, which counts as half way")


@dataclass(frozen=True, slots=True, kw_only=True)
class TermDistance:
    """One term of the distance of two sizes: both values, and the contribution to the distance."""

    term: DistanceTerm
    baseline: Number | None
    value: Number | None
    distance: float
    contribution: float
    detail: str

    @property
    def difference(self) -> float | None:
        """Value - baseline, in the unit of the term."""
        return difference(self.baseline, self.value)

    @property
    def difference_percent(self) -> float | None:
        """The difference in percent of the baseline."""
        return difference_percent(self.baseline, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A size compared with the reference size; `cheaper` and `bigger` are None where unknown."""

    size: SizeTraits
    terms: tuple[TermDistance, ...]
    cheaper: bool | None
    bigger: bool | None

    @property
    def distance(self) -> float:
        """Sum of the contributions of the terms: 0 to 1."""
        return sum(term.contribution for term in self.terms)


ClassDistance = Callable[[str | None, str | None, str | None], float]
ValueDistance = Callable[[Number | str | None], float]


def distance_parts(
    size: SizeTraits,
) -> tuple[ClassDistance | None, Sequence[tuple[DistanceTerm, ValueDistance]]]:
    """Return how the distance to other sizes is made up: the sum of what these functions return.

    The first one takes the id, the family and the vendor of a GPU, and is None where that of `size` is unknown; the
    others take the value of their term.
    """
    terms = [term for term in DISTANCE_TERMS if _applies(term, size)]
    total_weight = sum(term.weight for term in terms)
    class_weight = sum(term.weight for term in terms if term.get(size) is None)
    own = tuple(common(size) for common, *_ in GPU_CLASSES)

    def of_class(*gpu: str | None) -> float:
        return class_weight * _class_distance(own, gpu)[0] / total_weight

    def of_value(term: DistanceTerm, baseline: Number | str) -> ValueDistance:
        distance, share = _distance_from(term, baseline), term.weight / total_weight
        return lambda value: share * distance(value)

    values = [(term, of_value(term, baseline)) for term in terms if (baseline := term.get(size)) is not None]
    return of_class if class_weight else None, values


def measure_distance(size: SizeTraits, other: SizeTraits) -> Neighbour:
    """Return the distance of two sizes: the weighted mean of the terms.

    distance = sum(weight x distance of the term) / sum(weight), over the terms of which `size` has a value.
    An amount's distance is |log2(other / size)| / 3, at most 1: half as much is as far as twice as much, but a lower
    price is no distance. Another architecture of the CPU is entirely different: programs have to be built for it.
    """
    terms = [term for term in DISTANCE_TERMS if _applies(term, size)]
    total_weight = sum(term.weight for term in terms)
    own_usd, usd = size.usd_per_hour, other.usd_per_hour
    return Neighbour(
        size=other,
        terms=tuple(_measure_term(term, size, other, total_weight) for term in terms),
        cheaper=None if own_usd is None or usd is None else usd < own_usd,
        bigger=is_bigger(size, other),
    )


def is_bigger(size: SizeTraits, other: SizeTraits) -> bool | None:
    """Return whether `other` has at least as much GPU memory, vCPUs and memory as `size`, and more of one of them."""
    pairs = [
        (baseline, value)
        for baseline, value in (
            (size.gpu_memory_gib, other.gpu_memory_gib),
            (size.vcpus, other.vcpus),
            (size.memory_gib, other.memory_gib),
        )
        if baseline is not None
    ]
    if any(value is not None and value < baseline for baseline, value in pairs):
        return False
    if not pairs or any(value is None for _, value in pairs):
        return None
    return any(value is not None and value > baseline for baseline, value in pairs)


def _applies(term: DistanceTerm, size: SizeTraits) -> bool:
    return size.gpu_id is not None if term.name == "gpu_class" else term.get(size) is not None


def _measure_term(term: DistanceTerm, size: SizeTraits, other: SizeTraits, total_weight: int) -> TermDistance:
    baseline, value = term.get(size), term.get(other)
    if baseline is None:
        own, others = (tuple(common(compared) for common, *_ in GPU_CLASSES) for compared in (size, other))
        distance, detail = _class_distance(own, others)
    else:
        distance, detail = _value_distance(term, baseline, value)
    return TermDistance(
        term=term,
        baseline=None if isinstance(baseline, str) else baseline,
        value=None if isinstance(value, str) else value,
        distance=distance,
        contribution=term.weight * distance / total_weight,
        detail=detail,
    )


def _class_distance(own: Sequence[str | None], other: Sequence[str | None]) -> tuple[float, str]:
    """Return the distance of two GPUs by their id, family and vendor, and its description."""
    if other[0] is None:
        return _UNKNOWN_GPU
    for mine, theirs, (_, distance, detail) in zip(own, other, GPU_CLASSES, strict=True):
        if mine is not None and mine == theirs:
            return distance, detail
    return _OTHER_VENDOR


def _value_distance(term: DistanceTerm, baseline: Number | str, value: Number | str | None) -> tuple[float, str]:
    distance = _distance_from(term, baseline)(value)
    if value is None:
        return distance, "unknown, which counts as half way"
    suffix = "" if term.unit in (None, "count") else f" {term.unit}"
    wanted, has = (text if isinstance(text, str) else f"{float(text):g}{suffix}" for text in (baseline, value))
    return distance, f"{has}, as asked" if value == baseline else f"{has} beside {wanted}"


def _distance_from(term: DistanceTerm, wanted: Number | str) -> ValueDistance:
    """Return the function of the distance of a value to the one that is wanted."""
    if isinstance(wanted, str):
        return lambda value: UNKNOWN_DISTANCE if value is None else 0.0 if value == wanted else term.other_text
    baseline = float(wanted)
    doublings = log2(baseline) if baseline else 0.0

    def of_amount(value: Any) -> float:
        if value is None:
            return UNKNOWN_DISTANCE
        amount = float(value)
        if amount == baseline or (term.less_is_fine and amount < baseline):
            return 0.0
        if amount == 0 or baseline == 0:
            return 1.0
        return min(1.0, abs(log2(amount) - doublings) / MAX_DOUBLINGS)

    return of_amount

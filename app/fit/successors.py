"""Successors of a size: which sizes keep its features, their order, gains and losses, and why others are none."""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from itertools import groupby, islice
from operator import eq, ge
from typing import Any, NamedTuple

from app.fit.features import FEATURE_NAMES, FEATURES, Feature, FeatureKind
from app.fit.formulas.quantities import about
from app.fit.verdict import Failure, Rejection, SizeFacts

FEATURES_BY_NAME = {feature.name: feature for feature in FEATURES}
_INDEX = {name: index for index, name in enumerate(FEATURE_NAMES)}
_GPU_COUNT, _GPU_MODEL = _INDEX["gpu_count"], _INDEX["gpu_model"]


def _shares(value: frozenset[str], wanted: frozenset[str]) -> bool:
    return not value.isdisjoint(wanted)


MEETS: Mapping[FeatureKind, Callable[[Any, Any], bool]] = {"amount": ge, "flag": ge, "same": eq, "shared": _shares}
"""Whether a known value keeps a wanted one; a flag is wanted only where it is true."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(SizeFacts):
    """A size with what a plan for retirements compares.

    `values` are those of FEATURES, in that order; None is unknown, amounts are in the unit of the feature. `family` and
    `category` are those that sources state of its series.
    """

    key: str
    retirement_date: date | None = None
    family: str | None = None
    category: str | None = None
    values: tuple[Any, ...]

    def value(self, feature: str) -> Any:
        """Return the value of a feature by its name."""
        return self.values[_INDEX[feature]]


Requirement = tuple[int, Callable[[Any, Any], bool], Any]
"""Index of a feature, check and wanted value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a successor must have; GPUs are counted among those of one model, and of another its memory counts."""

    gpu_model: str | None
    of_same_model: Sequence[Requirement]
    of_other_model: Sequence[Requirement]

    def of(self, machine: Candidate) -> Sequence[Requirement]:
        """Return what is asked of a size; GPUs of which a model is unknown are counted, too."""
        model = machine.values[_GPU_MODEL]
        differs = model is not None and self.gpu_model is not None and model != self.gpu_model
        return self.of_other_model if differs else self.of_same_model


def requirements(old: Candidate, keep: Collection[str]) -> Requirements:
    """Return what a successor must have; what the old size lacks, or no source states of it, constrains nothing."""
    wanted = [
        (index, MEETS[feature.kind], old.values[index])
        for index, feature in enumerate(FEATURES)
        if feature.name in keep and old.values[index]
    ]
    return Requirements(
        gpu_model=old.values[_GPU_MODEL],
        of_same_model=wanted,
        of_other_model=[want for want in wanted if want[0] != _GPU_COUNT],
    )


def meets(machine: Candidate, wanted: Requirements) -> bool:
    """Return whether a size meets every requirement; an unknown value meets none."""
    values = machine.values
    for index, check, least in wanted.of(machine):
        value = values[index]
        if value is None or not check(value, least):
            return False
    return True


def unmet(machine: Candidate, wanted: Requirements) -> tuple[str, ...]:
    """Return the names of the features that a size does not keep."""
    values = machine.values
    return tuple(
        FEATURE_NAMES[index]
        for index, check, least in wanted.of(machine)
        if (value := values[index]) is None or not check(value, least)
    )


def unknown_features(old: Candidate, keep: Collection[str]) -> tuple[str, ...]:
    """Return the features to keep that no source states of the old size; those of GPUs only where it may have one."""
    no_gpu = old.values[_GPU_COUNT] == 0
    return tuple(
        feature.name
        for feature, value in zip(FEATURES, old.values, strict=True)
        if feature.name in keep and value is None and not (no_gpu and feature.of_gpu)
    )


def to_shown(value: Any) -> bool | float | str:
    """Convert to what is shown: amounts have four decimals, as a third of a GPU has in every list."""
    if isinstance(value, frozenset):
        return ", ".join(sorted(value))
    return value if isinstance(value, bool | str) else round(float(value), 4)


def to_words(value: bool | float | str) -> str:
    """Write a shown value in a sentence."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:,.10g}"


def unit_suffix(feature: Feature) -> str:
    """Return the unit to write behind an amount; counts have none."""
    return "" if feature.unit in (None, "count") else f" {feature.unit}"


class Refusals(NamedTuple):
    """Why there is no successor: how many sizes fail for each code, and those that fail least."""

    summary: Mapping[str, int]
    nearest: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcomings:
    """Why sizes are no successors of an old one, in whatever region.

    `features` are those that each of the `machines` does not keep, `failures` those of its status, by its key; `order`
    are the indexes of the machines, those with the fewest reasons first. `summary` counts the machines by code.
    """

    old: Candidate
    machines: Sequence[Candidate]
    features: Sequence[tuple[str, ...]]
    failures: Mapping[str, tuple[Failure, ...]]
    order: Sequence[int]
    summary: Mapping[str, int]


def find_shortcomings(
    old: Candidate, machines: Sequence[Candidate], keep: Collection[str], failures: Mapping[str, tuple[Failure, ...]]
) -> Shortcomings:
    """Return why sizes are no successors; `failures` are those of `candidate_failures`, by the keys of the sizes."""
    wanted = requirements(old, keep)
    others = [machine for machine in machines if machine.key != old.key]
    features = [unmet(machine, wanted) for machine in others]
    counts = [len(names) + len(failures[machine.key]) for machine, names in zip(others, features, strict=True)]
    summary: Counter[str] = Counter(
        code for machine in others for code in {failure.code for failure in failures[machine.key]}
    )
    for names, times in Counter(features).items():
        summary.update(dict.fromkeys({FEATURES_BY_NAME[name].code for name in names}, times))
    order = sorted(range(len(others)), key=counts.__getitem__)
    return Shortcomings(old=old, machines=others, features=features, failures=failures, order=order, summary=summary)


NEAREST_REFUSALS = 3
COMPARED_REFUSALS = 30
"""How many sizes with the fewest reasons, sold in the region or not, are compared by how much is missing."""


def refuse_all(shortcomings: Shortcomings, priced: Container[str], unpriced: Failure) -> Refusals:
    """Return why no size is a successor in a region; `unpriced` is the failure of the sizes that are not `priced`."""
    missing = sum(machine.key not in priced for machine in shortcomings.machines)
    summary = {**shortcomings.summary, **({unpriced.code: missing} if missing else {})}
    sold = (index for index in shortcomings.order if shortcomings.machines[index].key in priced)
    unsold = (index for index in shortcomings.order if shortcomings.machines[index].key not in priced)
    near = [
        *(_rejection(shortcomings, index) for index in islice(sold, COMPARED_REFUSALS)),
        *(_rejection(shortcomings, index, unpriced) for index in islice(unsold, COMPARED_REFUSALS)),
    ]
    # Those with the fewest reasons, then with the least sum of the shares that are missing.
    near.sort(
        key=lambda refusal: (
            len(refusal.failures),
            sum(failure.share_missing for failure in refusal.failures),
            refusal.vm.name.lower(),
        )
    )
    return Refusals(dict(sorted(summary.items())), tuple(near[:NEAREST_REFUSALS]))


def _rejection(shortcomings: Shortcomings, index: int, *more: Failure) -> Rejection:
    machine = shortcomings.machines[index]
    of_features = (_failure(name, shortcomings.old, machine) for name in shortcomings.features[index])
    return Rejection(vm=machine, failures=(*shortcomings.failures[machine.key], *more, *of_features))


def _failure(name: str, old: Candidate, machine: Candidate) -> Failure:
    feature, wanted, actual = FEATURES_BY_NAME[name], old.value(name), machine.value(name)
    if feature.kind != "amount":
        finding = "no source says" if actual is None else f"it is {to_words(to_shown(actual))}"
        return Failure(name, feature.code, f"{feature.label} must be {to_words(to_shown(wanted))}, {finding}")
    finding = "no source says what it has" if actual is None else f"has {actual:,.10g}"
    of = f"{unit_suffix(feature)} of" if unit_suffix(feature) else ""
    detail = f"needs {wanted:,.10g}{of} {feature.label}, {finding}"
    return Failure(name, feature.code, detail, float(wanted), None if actual is None else float(actual), feature.unit)


def candidate_failures(machine: Candidate, not_before: date) -> Iterator[Failure]:
    """Yield why a size that can be ordered is no candidate anywhere: it is in preview, or retires before a day."""
    if machine.status == "preview":
        yield Failure("status", "PREVIEW", "is in preview")
    elif machine.retirement_date is not None and machine.retirement_date < not_before:
        yield Failure("status", "RETIRING", f"retires on {machine.retirement_date}, before {not_before}")
    if not machine.verified:
        yield Failure("verified", "UNVERIFIED", "only third parties name it")


MAX_GIVEN_UP = 3
MAX_FIXES = 3


def features_to_give_up(shortcomings: Shortcomings, usd_per_hour: Mapping[str, Decimal]) -> list[tuple[str, ...]]:
    """Return the smallest sets of features without which one of the sizes that have a price would be a successor.

    `usd_per_hour` is by the key of the size. Fewest features first, then the cheapest size; no set contains another.
    """
    cheapest: dict[tuple[str, ...], Decimal] = {}
    for machine, names in zip(shortcomings.machines, shortcomings.features, strict=True):
        usd = usd_per_hour.get(machine.key)
        if usd is not None and not shortcomings.failures[machine.key] and 0 < len(names) <= MAX_GIVEN_UP:
            cheapest[names] = min(usd, cheapest.get(names, usd))
    chosen: list[tuple[str, ...]] = []
    for names in sorted(cheapest, key=lambda names: (len(names), cheapest[names], names)):
        if not any(set(given_up) <= set(names) for given_up in chosen):
            chosen.append(names)
    return chosen[:MAX_FIXES]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureChange:
    """A feature of which a successor has more or less, or something else."""

    feature: str = field(metadata=about("Name of the feature: `max_data_disks`."))
    unit: str | None = field(metadata=about("Of old and new; null if they are not amounts."))
    old: bool | float | str = field(
        metadata=about("What the old size has: a number, a boolean or a text, by the feature.")
    )
    new: bool | float | str = field(metadata=about("What the successor has."))
    detail: str = field(metadata=about("The same in words."))


class Differences(NamedTuple):
    """What a successor has just as much of (`kept`), more of and less of; `unknown` is what no source states of it.

    `relation` is one of RELATIONS.
    """

    relation: str
    kept: list[str]
    gained: list[FeatureChange]
    lost: list[FeatureChange]
    unknown: list[str]


RELATIONS = ("same_family", "same_category", "other")
"""How two sizes are related by what sources state of their series, the nearest first."""


COMPARABLE_CATEGORIES = frozenset({"general_purpose", "compute_optimized", "memory_optimized"})
"""Categories that differ in vCPUs and memory, which are compared; others have disks, GPUs or links of their own."""

_BOOT = frozenset({"arch", "generation"})
"""The features without which the image of a VM does not start."""


class Market:
    """The candidates that are sold in one region, each with its price in USD an hour, the cheapest first."""

    def __init__(self, candidates: Iterable[Candidate], usd_per_hour: Mapping[str, Decimal]) -> None:
        self.usd_per_hour = usd_per_hour
        priced = [machine for machine in candidates if machine.key in usd_per_hour]
        self.machines = sorted(priced, key=lambda machine: usd_per_hour[machine.key])


LOCAL_DISK_FEATURES = frozenset({"local_disk", "ephemeral_os_disk"})
"""The features that a local disk gives, however small it is."""


def find_successors(
    old: Candidate, market: Market, keep: Collection[str], most: int, waivable: Collection[str] = ()
) -> list[Candidate]:
    """Return the best sizes that keep what they must, ordered by cost.

    The features that are `waivable` do not outrank a doubled price: sizes that lack only these come first if the
    cheapest that keeps them costs more than twice as much, and more than twice as much as the old size. They leave the
    last place to that one.

    Two kinds of sizes come behind all others, whatever they cost: those of another kind of hardware (see
    COMPARABLE_CATEGORIES), and last those on which the image of a VM does not start (its architecture, its generation).
    At the same cost those come first that lose least, then those of the same family, of the same category, others.
    """
    wanted, boot = requirements(old, keep), requirements(old, _BOOT - {*keep})
    alike = COMPARABLE_CATEGORIES if old.category in COMPARABLE_CATEGORIES else {old.category}
    everything = requirements(old, FEATURE_NAMES)
    usd_per_hour = market.usd_per_hour
    now = usd_per_hour.get(old.key)
    waived = requirements(old, {*keep} - {*waivable}) if waivable and now is not None else None
    lacking: list[Candidate] = []
    tiers: tuple[list[Candidate], ...] = ([], [], [], [])
    for machine in market.machines:
        if len(tiers[0]) >= most and usd_per_hour[machine.key] > usd_per_hour[tiers[0][-1].key]:
            break
        if machine.key == old.key:
            continue
        is_kept = meets(machine, wanted)
        if is_kept or (waived is not None and not tiers[0] and meets(machine, waived)):
            other = old.category is not None and machine.category not in alike
            tier = 2 * (not meets(machine, boot)) + other
            if is_kept:
                tiers[tier].append(machine)
            elif tier == 0:
                lacking.append(machine)
    if tiers[0] and now is not None:
        half = usd_per_hour[tiers[0][0].key] / 2
        lacking = [machine for machine in lacking if max(now, usd_per_hour[machine.key]) < half]
    else:
        lacking = []
    successors: list[Candidate] = []
    for machines, places in ((lacking, max(1, most - 1)), *((machines, most) for machines in tiers)):
        for _, equals in groupby(machines, key=lambda machine: usd_per_hour[machine.key]):
            if len(successors) >= places:
                break
            # By how much is lost or unknown, the relation, the name.
            successors += sorted(
                equals,
                key=lambda machine: (
                    len(unmet(machine, everything)),
                    RELATIONS.index(_relation(old, machine)),
                    machine.name.lower(),
                ),
            )
        del successors[places:]
    return successors


def _relation(old: Candidate, machine: Candidate) -> str:
    if old.family is not None and old.family == machine.family:
        return "same_family"
    return "same_category" if old.category is not None and old.category == machine.category else "other"


def differences(old: Candidate, machine: Candidate) -> Differences:
    """Compare every feature that is known of the old size; what it lacks can only be gained."""
    _, kept, gained, lost, unknown = changes = Differences(_relation(old, machine), [], [], [], [])
    for feature, was, now in zip(FEATURES, old.values, machine.values, strict=True):
        if was is None or (not was and not now):
            continue
        if now is None:
            unknown.append(feature.name)
        elif not MEETS[feature.kind](now, was):
            lost.append(_change(feature, was, now))
        elif feature.kind in ("amount", "flag") and now > was:
            gained.append(_change(feature, was, now))
        else:
            kept.append(feature.name)
    return changes


def _change(feature: Feature, was: Any, now: Any) -> FeatureChange:
    old, new = to_shown(was), to_shown(now)
    detail = f"{feature.label}: {to_words(old)} -> {to_words(new)}{unit_suffix(feature)}"
    return FeatureChange(feature=feature.name, unit=feature.unit, old=old, new=new, detail=detail)

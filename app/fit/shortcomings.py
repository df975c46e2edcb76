"""Why no size is a successor of another, and which features to give up so that one is."""

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import islice

from app.fit.features import FEATURES_BY_NAME, Machine, requirements, to_shown, to_words, unit_suffix, unmet
from app.fit.verdict import Failure, plain_failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A size that is no successor, with every reason."""

    machine: Machine
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Why there is no successor: how many sizes fail for each code, and those that fail least."""

    summary: Mapping[str, int]
    nearest: tuple[Refusal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcomings:
    """Why sizes are no successors of an old one, in whatever region.

    `features` are those that each of the `machines` does not keep, `failures` those of its status, by its key; `order`
    are the indexes of the machines, those with the fewest reasons first. `summary` counts the machines by code.
    """

    old: Machine
    machines: Sequence[Machine]
    features: Sequence[tuple[str, ...]]
    failures: Mapping[str, tuple[Failure, ...]]
    order: Sequence[int]
    summary: Mapping[str, int]


def find_shortcomings(
    old: Machine, machines: Sequence[Machine], keep: Collection[str], failures: Mapping[str, tuple[Failure, ...]]
) -> Shortcomings:
    """Return why sizes are no successors; `failures` are those of `candidate_failures`, by the keys of the sizes."""
    wanted = requirements(old, keep)
    others = [machine for machine in machines if machine.key != old.key]
    features = [unmet(machine, wanted) for machine in others]
    counts = [len(names) + len(failures[machine.key]) for machine, names in zip(others, features, strict=True)]
    summary: Counter[str] = Counter(code for machine in others for code in {one.code for one in failures[machine.key]})
    for names, times in Counter(features).items():
        summary.update(dict.fromkeys({FEATURES_BY_NAME[name].code for name in names}, times))
    order = sorted(range(len(others)), key=counts.__getitem__)
    return Shortcomings(old=old, machines=others, features=features, failures=failures, order=order, summary=summary)


NEAREST_REFUSALS = 3
COMPARED_REFUSALS = 30
"""How many sizes with the fewest reasons, sold in the region or not, are compared by how much is missing."""


def refuse_all(found: Shortcomings, priced: Container[str], unpriced: Failure) -> Refusals:
    """Return why no size is a successor in a region; `unpriced` is the failure of the sizes that are not `priced`."""
    missing = sum(machine.key not in priced for machine in found.machines)
    summary = {**found.summary, **({unpriced.code: missing} if missing else {})}
    sold = (index for index in found.order if found.machines[index].key in priced)
    unsold = (index for index in found.order if found.machines[index].key not in priced)
    near = [
        *(_refusal(found, index) for index in islice(sold, COMPARED_REFUSALS)),
        *(_refusal(found, index, unpriced) for index in islice(unsold, COMPARED_REFUSALS)),
    ]
    return Refusals(
        summary=dict(sorted(summary.items())), nearest=tuple(sorted(near, key=_distance)[:NEAREST_REFUSALS])
    )


def _refusal(found: Shortcomings, index: int, *more: Failure) -> Refusal:
    machine = found.machines[index]
    of_features = (_failure(name, found.old, machine) for name in found.features[index])
    return Refusal(machine=machine, failures=(*found.failures[machine.key], *more, *of_features))


def _distance(refusal: Refusal) -> tuple[int, float, str]:
    """Sort key: the number of reasons, then the sum of the shares that are missing."""
    failures = refusal.failures
    return (len(failures), sum(failure.share_missing for failure in failures), refusal.machine.name.lower())


def _failure(name: str, old: Machine, machine: Machine) -> Failure:
    feature, wanted, actual = FEATURES_BY_NAME[name], old.value(name), machine.value(name)
    if feature.kind != "amount":
        found = "no source says" if actual is None else f"it is {to_words(to_shown(actual))}"
        return plain_failure(name, feature.code, f"{feature.label} must be {to_words(to_shown(wanted))}, {found}")
    found = "no source says what it has" if actual is None else f"has {actual:.10g}"
    of = f"{unit_suffix(feature)} of" if unit_suffix(feature) else ""
    return Failure(
        constraint=name,
        code=feature.code,
        required=float(wanted),
        available=None if actual is None else float(actual),
        unit=feature.unit,
        detail=f"needs {wanted:.10g}{of} {feature.label}, {found}",
    )


def candidate_failures(machine: Machine, not_before: date) -> Iterator[Failure]:
    """Yield why a size that can be ordered is no candidate anywhere: it is in preview, or retires before a day."""
    if machine.status == "preview":
        yield plain_failure("status", "PREVIEW", "is in preview")
    elif machine.retirement_date is not None and machine.retirement_date < not_before:
        yield plain_failure("status", "RETIRING", f"retires on {machine.retirement_date}, before {not_before}")
    if not machine.verified:
        yield plain_failure("verified", "UNVERIFIED", "only third parties name it")


MAX_GIVEN_UP = 3
MAX_FIXES = 3


def features_to_give_up(found: Shortcomings, usd_per_hour: Mapping[str, Decimal]) -> list[tuple[str, ...]]:
    """Return the smallest sets of features without which one of the sizes that have a price would be a successor.

    `usd_per_hour` is by the key of the size. Fewest features first, then the cheapest size; no set contains another.
    """
    cheapest: dict[tuple[str, ...], Decimal] = {}
    for machine, names in zip(found.machines, found.features, strict=True):
        usd = usd_per_hour.get(machine.key)
        if usd is not None and not found.failures[machine.key] and 0 < len(names) <= MAX_GIVEN_UP:
            cheapest[names] = min(usd, cheapest.get(names, usd))
    chosen: list[tuple[str, ...]] = []
    for names in sorted(cheapest, key=lambda names: (len(names), cheapest[names], names)):
        if not any(set(one) <= set(names) for one in chosen):
            chosen.append(names)
    return chosen[:MAX_FIXES]

"""Successors of a size: which sizes keep the features it has, their order, and what each gains and loses."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

from app.fit.features import (
    FEATURE_NAMES,
    FEATURES,
    MEETS,
    Feature,
    Machine,
    Requirements,
    meets,
    requirements,
    to_shown,
    to_words,
    unit_suffix,
    unmet,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A feature of which a successor has more or less, or something else; `old` and `new` are in its unit."""

    feature: str
    unit: str | None
    old: bool | float | str
    new: bool | float | str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """What a successor has just as much of (`kept`), more of and less of; `unknown` is what no source states of it."""

    kept: tuple[str, ...]
    gained: tuple[Change, ...]
    lost: tuple[Change, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A size that keeps what it must; `relation` is one of RELATIONS."""

    machine: Machine
    relation: str


RELATIONS = ("same_family", "same_category", "other")
"""How two sizes are related by what sources state of their series, the nearest first."""


COMPARABLE_CATEGORIES = frozenset({"general_purpose", "compute_optimized", "memory_optimized"})
"""Categories that differ in vCPUs and memory, which are compared; others have disks, GPUs or links of their own."""

_BOOT = frozenset({"arch", "generation"})
"""The features without which the image of a VM does not start."""


class Market:
    """The candidates that are sold in one region, each with its price in USD an hour, the cheapest first."""

    def __init__(self, candidates: Iterable[Machine], usd_per_hour: Mapping[str, Decimal]) -> None:
        self.usd_per_hour = usd_per_hour
        priced = [machine for machine in candidates if machine.key in usd_per_hour]
        self.machines = sorted(priced, key=lambda machine: usd_per_hour[machine.key])


LOCAL_DISK_FEATURES = frozenset({"local_disk", "ephemeral_os_disk"})
"""The features that a local disk gives, however small it is."""


def find_successors(
    old: Machine, market: Market, keep: Collection[str], most: int, waivable: Collection[str] = ()
) -> list[Match]:
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
    lacking: list[Machine] = []
    tiers: tuple[list[Machine], ...] = ([], [], [], [])
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
    found: list[Match] = []
    for machines, places in ((lacking, max(1, most - 1)), *((machines, most) for machines in tiers)):
        for _, equals in groupby(machines, key=lambda machine: usd_per_hour[machine.key]):
            if len(found) >= places:
                break
            matches = [Match(machine=machine, relation=_relation(old, machine)) for machine in equals]
            if len(matches) > 1:
                matches.sort(key=lambda match: _tie_break(match, everything))
            found += matches
        del found[places:]
    return found


def _tie_break(match: Match, everything: Requirements) -> tuple[int, int, str]:
    """Sort key of successors that cost the same: how much is lost or unknown, the relation, the name."""
    machine = match.machine
    return (len(unmet(machine, everything)), RELATIONS.index(match.relation), machine.name.lower())


def _relation(old: Machine, machine: Machine) -> str:
    if old.family is not None and old.family == machine.family:
        return "same_family"
    return "same_category" if old.category is not None and old.category == machine.category else "other"


def differences(old: Machine, machine: Machine) -> Differences:
    """Compare every feature that is known of the old size; what it lacks can only be gained."""
    kept, gained, lost, unknown = [], [], [], []
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
    return Differences(kept=tuple(kept), gained=tuple(gained), lost=tuple(lost), unknown=tuple(unknown))


def _change(feature: Feature, was: Any, now: Any) -> Change:
    old, new = to_shown(was), to_shown(now)
    amounts = f"{to_words(old)} -> {to_words(new)}{unit_suffix(feature)}"
    detail = f"{feature.label}: {amounts}"
    return Change(feature=feature.name, unit=feature.unit, old=old, new=new, detail=detail)

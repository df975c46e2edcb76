"""Successors of a size: which sizes keep the features it has, their order, and what each gains and loses."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.fit.features import (
    ESSENTIAL_FEATURES,
    FEATURES,
    MEETS,
    Feature,
    Machine,
    meets,
    requirements,
    to_shown,
    to_words,
    unit_suffix,
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


class Market:
    """The candidates that are sold in one region, each with its price in USD an hour, the cheapest first."""

    def __init__(self, candidates: Iterable[Machine], usd_per_hour: Mapping[str, Decimal]) -> None:
        self.usd_per_hour = usd_per_hour
        priced = [machine for machine in candidates if machine.key in usd_per_hour]
        self.machines = sorted(priced, key=lambda machine: (usd_per_hour[machine.key], machine.name.lower()))
        self._by_family: defaultdict[str | None, list[Machine]] = defaultdict(list)
        self._by_category: defaultdict[str | None, list[Machine]] = defaultdict(list)
        for machine in self.machines:
            self._by_family[machine.family].append(machine)
            self._by_category[machine.category].append(machine)

    def related(self, old: Machine, relation: str) -> Iterator[Machine]:
        """Yield the candidates that are so related to a size, the cheapest first."""
        if relation == "same_family":
            listed: Iterable[Machine] = self._by_family.get(old.family, ()) if old.family is not None else ()
        elif relation == "same_category":
            listed = self._by_category.get(old.category, ()) if old.category is not None else ()
        else:
            listed = self.machines
        return (machine for machine in listed if _relation(old, machine) == relation and machine.key != old.key)


def find_successors(old: Machine, market: Market, keep: Collection[str], most: int) -> list[Match]:
    """Return the best sizes that keep what they must: those that lose no essential feature first.

    Among them those of the same family, then of the same category, then others; each of these by price.
    """
    wanted, everything = requirements(old, keep), requirements(old, {*keep, *ESSENTIAL_FEATURES})
    found: dict[str, Match] = {}
    for required in (everything, wanted) if len(everything) > len(wanted) else (wanted,):
        for relation in RELATIONS:
            for machine in market.related(old, relation):
                if machine.key not in found and meets(machine, required):
                    found[machine.key] = Match(machine=machine, relation=relation)
                    if len(found) == most:
                        return list(found.values())
    return list(found.values())


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

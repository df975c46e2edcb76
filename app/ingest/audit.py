"""Judges what the file of another catalog states, figure by figure, by what the sources of this one state.

Nothing of the file is stored. A figure is called wrong only by a vendor's API or page, by two independent publishers,
or by an identity that a price breaks (`app.catalog.price_checks`); where the evidence is weaker it is not judged.
Sources that were made from the audited catalog are no evidence for or against it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Fact, Price, Region, Series, Size, Source
from app.catalog.names import region_key
from app.catalog.price_checks import REFUSAL_REASONS, ListedPrice, Refusal, check_prices
from app.catalog.readings import Reading
from app.catalog.store.facts import load_subject_keys
from app.ingest.feeds.price_lists import NANO, format_usd
from app.ingest.peer_formats import Claim, PeerFormat, read_claims

Verdict = Literal["agrees", "other_meaning", "stale", "wrong", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "other_meaning", "stale", "wrong", "unknown")
VENDOR_KINDS = ("vendor_page", "vendor_api")
_IDENTITIES = ("equals_windows", "cloud_services", "unlike_parent")
"""The rules of prices that are evidence by themselves: a list that changes back and forth may be right."""
CLAIMED = "the audited file"
"""The source that prices of an audited file have while they are checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of one figure: what it should be, if that is known, and why."""

    claim: Claim
    verdict: Verdict
    expected: str = ""
    evidence: str = ""


@dataclass(slots=True, kw_only=True)
class Audit:
    """The judgements of a file, in its order, and how many there are of each field and verdict."""

    judgements: list[Judgement] = field(default_factory=list)
    counts: dict[str, Counter[Verdict]] = field(default_factory=dict)

    def add(self, judgement: Judgement) -> None:
        """Add a judgement."""
        self.judgements.append(judgement)
        self.counts.setdefault(judgement.claim.meaning.field, Counter())[judgement.verdict] += 1


def share_that_agrees(counts: Mapping[Verdict, int]) -> Decimal | None:
    """Return the share of the judged figures that agree, in percent; None where none was judged."""
    judged = sum(number for verdict, number in counts.items() if verdict != "unknown")
    agree = counts.get("agrees", 0) + counts.get("other_meaning", 0)
    return (Decimal(100 * agree) / judged).quantize(Decimal("0.1")) if judged else None


def audit_file(session: Session, file: Path, peer: PeerFormat, *, today: date, day: date | None = None) -> Audit:
    """Judge every figure of a file; `day` is that of its prices where it does not state one. Raises BadData."""
    identify = load_subject_keys(session, Reading()).size_key
    claims = [*read_claims(file, peer)]
    keys = {claim.size: identify(claim.size) for claim in claims}
    names = frozenset(session.execute(select(table_of(Size).c.key)).scalars())
    facts = _load_facts(session, peer.publishers, {claim.meaning.field for claim in claims})
    prices = _judge_prices(session, [claim for claim in claims if " " in claim.meaning.field], keys, peer, day or today)
    audit = Audit()
    for claim in claims:
        if keys[claim.size] not in names:
            audit.add(Judgement(claim=claim, verdict="unknown", evidence="the catalog has no such size"))
        elif claim in prices:
            audit.add(prices[claim])
        else:
            audit.add(_judge_figure(claim, facts.get((keys[claim.size], claim.meaning.field), ())))
    return audit


# Figures of sizes


class _Stated(NamedTuple):
    """What a source states of a field of a size, after correction, and whether that is accepted."""

    value: Fraction
    kind: str
    publisher: str
    source: str
    accepted: bool


def _load_facts(
    session: Session, but: Collection[str], fields: Collection[str]
) -> Mapping[tuple[str, str], Sequence[_Stated]]:
    fact, source = table_of(Fact).c, table_of(Source).c
    query = (
        select(fact.subject, fact.field, func.coalesce(fact.corrected_value, fact.value).label("value"))
        .add_columns(source.kind, source.publisher, source.id, fact.verdict)
        .join_from(table_of(Fact), table_of(Source), source.id == fact.source_id)
        .where(fact.kind == "size", fact.field.in_(sorted(fields)), source.publisher.not_in(sorted(but)))
        .order_by(source.id)
    )
    facts: dict[tuple[str, str], list[_Stated]] = defaultdict(list)
    for row in session.execute(query):
        stated = _Stated(Fraction(row.value), row.kind, row.publisher, row.id, row.verdict == "accepted")
        facts[row.subject, row.field].append(stated)
    return facts


def _judge_figure(claim: Claim, stated: Sequence[_Stated]) -> Judgement:
    accepted = next((figure for figure in stated if figure.accepted), None)
    if accepted is None:
        return Judgement(claim=claim, verdict="unknown", evidence="no source of the catalog states it")
    ours = [figure for figure in stated if figure.value == accepted.value]
    theirs = [figure.source for figure in stated if figure.kind in VENDOR_KINDS and _is_equal(claim, figure.value)]
    expected = str(accepted.value) if accepted.value.denominator < NANO else str(float(accepted.value))
    verdict: Verdict = "unknown"
    evidence = f"{expected} in {', '.join(figure.source for figure in ours)}"
    if _is_equal(claim, accepted.value):
        verdict = "agrees"
    elif meaning := _other_meaning(claim, accepted.value):
        verdict, evidence = "other_meaning", f"{meaning}: {evidence}"
    elif theirs:
        evidence = f"{evidence}, but as claimed in {', '.join(theirs)}"
    elif any(figure.kind in VENDOR_KINDS for figure in ours) or len({figure.publisher for figure in ours}) > 1:
        verdict = "wrong"
    else:
        evidence = f"{evidence} only, which is no vendor's"
    return Judgement(claim=claim, verdict=verdict, expected=expected, evidence=evidence)


_CLOSE = Fraction(1, 1_000)
"""The most that a figure may be away from a value that it is rounded from, however few digits it has."""


def _is_equal(claim: Claim, value: Fraction) -> bool:
    """Check whether a figure is a value, rounded to the digits that were written; whole numbers are exact."""
    rounded = min(claim.digits / 2, value * _CLOSE) if claim.digits < claim.meaning.unit else 0
    return abs(claim.value - value) <= rounded


def _other_meaning(claim: Claim, value: Fraction) -> str | None:
    """Return how a figure is a value by what the format means by it."""
    if claim.meaning.counts_devices and value.denominator > 1 and claim.value == ceil(value):
        return "counts devices, and a part of one as one"
    rounded_by = 1 if claim.value.denominator == 1 else claim.meaning.unit  # 223,232 MiB are 218 GiB
    if claim.meaning.whole and abs(claim.value - value) < rounded_by:
        return "rounded to a whole number"
    return None


# Prices


def _judge_prices(
    session: Session, claims: Iterable[Claim], keys: Mapping[str, str], peer: PeerFormat, day: date
) -> dict[Claim, Judgement]:
    """Return the judgement of each price, one series of sizes at a time, as prices are checked in an ingest."""
    regions = frozenset(session.execute(select(table_of(Region).c.code)).scalars())
    judgements: dict[Claim, Judgement] = {}
    claimed: dict[str, list[tuple[Claim, ListedPrice]]] = defaultdict(list)
    for claim in claims:
        region, (os, purchase), on = region_key(claim.region or ""), claim.meaning.field.split(" "), claim.day or day
        if region not in regions:
            judgements[claim] = Judgement(claim=claim, verdict="unknown", evidence="the catalog has no such region")
            continue
        key, nano = keys[claim.size], round(claim.value * NANO)
        claimed[key].append((claim, ListedPrice(key, region, os, purchase, on, CLAIMED, on, on, nano)))
    publishers = {row.id: row.publisher for row in session.execute(select(_SOURCE.c.id, _SOURCE.c.publisher))}
    for series, rows in groupby(_listed_prices(session, peer.publishers) if claimed else (), key=itemgetter(0)):
        listed, parents, has_cloud_services = list[ListedPrice](), dict[str, str](), False
        for _, parent, cloud_services, *values in rows:
            price = ListedPrice(*values)
            listed.append(price)
            has_cloud_services = bool(cloud_services)
            if parent is not None:
                parents[price.size_key] = parent
        sizes = {price.size_key for price in listed}
        of_series = [pair for size in sorted(sizes) for pair in claimed.pop(size, ())]
        to_check = [price for _, price in of_series if price.purchase == "on_demand" and price.nano_usd]
        with_meters = dict.fromkeys({*sizes, *parents.values()} if has_cloud_services else (), series)
        refusals = check_prices([*listed, *to_check], parents=parents, series=with_meters) if to_check else []
        refused = {refusal.price: refusal for refusal in refusals}
        by_offer: dict[tuple[str, ...], list[ListedPrice]] = defaultdict(list)
        for price in listed:
            by_offer[_offer_of(price)].append(price)
        for claim, price in of_series:
            judgements[claim] = _judge_price(claim, price, by_offer[_offer_of(price)], refused.get(price), publishers)
    for claim, _ in (pair for of_size in claimed.values() for pair in of_size):
        judgements[claim] = Judgement(claim=claim, verdict="unknown", evidence="no other list of the catalog has it")
    return judgements


_offer_of = itemgetter(*range(4))
_SOURCE = table_of(Source)


def _listed_prices(session: Session, but: Collection[str]) -> Iterator[Any]:
    """Yield the prices of lists by series, which are not of some publishers and were not computed."""
    size, price, series = table_of(Size), table_of(Price), table_of(Series)
    parent = size.alias("parent")
    group = func.coalesce(parent.c.series_id, size.c.series_id, parent.c.key, size.c.key)
    query = (
        select(group, parent.c.key.label("parent"), series.c.cloud_services)
        .add_columns(*(price.c[name] for name in ListedPrice._fields[:-1]), price.c.nano_usd_per_hour)
        .join_from(price, _SOURCE, _SOURCE.c.id == price.c.source_id)
        .join(size, size.c.key == price.c.size_key)
        .join(parent, parent.c.name == size.c.parent_size, isouter=True)
        .join(series, series.c.id == func.coalesce(parent.c.series_id, size.c.series_id), isouter=True)
        .where(_SOURCE.c.publisher.not_in(sorted(but)), _SOURCE.c.formula.is_(None))
        .order_by(group)
    )
    yield from session.execute(query, execution_options={"yield_per": 10_000})


def _judge_price(
    claim: Claim,
    price: ListedPrice,
    listed: Sequence[ListedPrice],
    refusal: Refusal | None,
    publishers: Mapping[str, str],
) -> Judgement:
    day = price.valid_from
    before = max((run for run in listed if run.valid_from <= day), key=lambda run: run.valid_from, default=None)
    after = min((run for run in listed if run.seen_until >= day), key=lambda run: run.seen_until, default=None)
    nearest = after or before
    expected = format_usd(nearest.nano_usd) if nearest else ""
    if (
        refusal is not None
        and refusal.rule in _IDENTITIES
        and nearest is not None
        and not _is_equal(claim, _usd(nearest))
    ):
        evidence = f"{REFUSAL_REASONS[refusal.rule].removeprefix('that ')}: {refusal.evidence}"
        return Judgement(claim=claim, verdict="wrong", expected=expected, evidence=evidence)
    if nearest is None:
        return Judgement(claim=claim, verdict="unknown", evidence="no other list of the catalog has it")
    same = [run for run in listed if _is_equal(claim, _usd(run))]
    if same:
        last = max(same, key=lambda run: run.seen_until)
        newer = [run for run in listed if run not in same and last.seen_until < run.valid_from <= day]
        if not newer:
            return Judgement(claim=claim, verdict="agrees", expected=format_usd(last.nano_usd), evidence=_place(last))
        first = min(newer, key=lambda run: run.valid_from)
        evidence = f"right in {_place(last)}; {format_usd(first.nano_usd)} in {_place(first)}"
        return Judgement(claim=claim, verdict="stale", expected=format_usd(first.nano_usd), evidence=evidence)
    if before and after and price.purchase != "spot" and before.nano_usd == after.nano_usd:
        evidence = f"{expected} in {_place(before)} and in {_place(after)}"
        if publishers[before.source_id] != publishers[after.source_id]:
            return Judgement(claim=claim, verdict="wrong", expected=expected, evidence=evidence)
    evidence = f"{expected} in {_place(nearest)}, which need not be the price of {day}"
    return Judgement(claim=claim, verdict="unknown", expected=expected, evidence=evidence)


def _usd(price: ListedPrice) -> Fraction:
    return Fraction(price.nano_usd, NANO)


def _place(price: ListedPrice) -> str:
    """Return the list that has a price, with the last day on which it had it."""
    return f"{price.source_id} of {price.seen_until}"

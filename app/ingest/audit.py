"""Judges what the file of another catalog states, figure by figure, by what the sources of this one state.

Nothing of the file is stored. A figure is called wrong only by a vendor's API or page, by two independent publishers,
or by an identity that a price breaks (`app.catalog.price_checks`); where the evidence is weaker it is not judged.
Sources that were made from the audited catalog are no evidence for or against it.

Of how other catalogs write their files there is a row of a table each, and a reader of CSV and JSON for all of them:
which column has which figure, in which unit, and what it means where that is not what this catalog means by the field.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import ceil
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Fact, Region, Size, Source
from app.catalog.money import NANO_USD, to_usd_text
from app.catalog.names import region_key
from app.catalog.price_checks import REFUSAL_REASONS, ListedPrice, Refusal, check_prices
from app.catalog.readings import Reading
from app.catalog.store.facts import load_subject_keys
from app.catalog.store.price_checks import prices_by_series
from app.errors import BadData
from app.ingest.files import json_items, open_csv, open_json, open_reader, whole_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a column says: a field of a size, or the price of a way to buy (`linux on_demand`).

    `unit` is how much of the field's unit one of the column's is. `whole` figures are rounded to whole units;
    `counts_devices` has a part of a GPU as one. A blank cell states `blank`, by default nothing.
    """

    field: str
    unit: Fraction = Fraction(1)
    whole: bool = False
    counts_devices: bool = False
    blank: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerFormat:
    """A file of another catalog: its columns, and the `publishers` of this catalog's sources that are of its making."""

    title: str
    columns: Mapping[str, Meaning]
    size: str
    region: str | None = None
    day: str | None = None
    publishers: frozenset[str] = frozenset()


class PeerClaim(NamedTuple):
    """A figure that a file states, with the cell and its place; `value` is in the unit of the field.

    Nothing can be said of a cell that `is_number` says is none, such as N/A, or Yes for a GPU.
    """

    size: str
    region: str | None
    day: date | None
    meaning: Meaning
    value: Fraction
    digits: Fraction
    """One unit of the last place that was written, in the unit of the field."""
    cell: str
    line: int
    column: str
    is_number: bool = True


_MIB = Fraction(1, 1024)
_VCPUS, _GIB = Meaning(field="vcpus"), Meaning(field="memory_gib", whole=True)
_DEVICES = Meaning(field="gpu_count", counts_devices=True)
_LINUX, _SPOT = Meaning(field="linux on_demand"), Meaning(field="linux spot")

PEER_FORMATS: Mapping[str, PeerFormat] = {
    "skypilot": PeerFormat(
        title="SkyPilot catalog, vms.csv",
        size="InstanceType",
        region="Region",
        columns={
            "vCPUs": _VCPUS,
            "MemoryGiB": _GIB,
            "AcceleratorCount": Meaning(field="gpu_count", blank="0"),
            "Price": _LINUX,
            "SpotPrice": _SPOT,
        },
        publishers=frozenset({"SkyPilot"}),
    ),
    "gpuhunt": PeerFormat(
        title="gpuhunt, a provider's CSV",
        size="instance_name",
        region="location",
        columns={"cpu": _VCPUS, "memory": _GIB, "gpu_count": _DEVICES},
    ),
    "vantage": PeerFormat(
        title="ec2instances.info, instances.json",
        size="instance_type",
        region="region",
        columns={
            "vCPU": _VCPUS,
            "vcpu": _VCPUS,
            "memory": _GIB,
            "GPU": _DEVICES,
            "linux.ondemand": _LINUX,
            "mswin.ondemand": Meaning(field="windows on_demand"),
            "windows.ondemand": Meaning(field="windows on_demand"),
        },
    ),
    "autoscaler": PeerFormat(
        title="Kubernetes cluster-autoscaler, instance types as a table",
        size="size",
        columns={"vcpu": _VCPUS, "memory_mib": Meaning(field="memory_gib", unit=_MIB, whole=True), "gpu": _DEVICES},
        publishers=frozenset({"Kubernetes"}),
    ),
    "karpenter": PeerFormat(
        title="Karpenter providers, prices as a table",
        size="size",
        region="region",
        day="date",
        columns={"usd_per_hour": _LINUX},
        publishers=frozenset({"karpenter-provider-azure", "karpenter-provider-aws"}),
    ),
    "aspire": PeerFormat(
        title="Aspire, AksNodeVmSizes as a table",
        size="size",
        columns={"vcpus": _VCPUS, "memory_gib": _GIB, "gpus": _DEVICES},
    ),
    "sku-locator": PeerFormat(
        title="Azure VM SKU Locator, sizes",
        size="name",
        columns={"vCPUs": _VCPUS, "memoryGB": _GIB},
    ),
    "sku-locator-prices": PeerFormat(
        title="Azure VM SKU Locator, prices",
        size="size_without_Standard",
        region="region",
        day="date",
        columns={"linux": _LINUX, "windows": Meaning(field="windows on_demand"), "spot": _SPOT},
        publishers=frozenset({"djtools"}),
    ),
    "ccf": PeerFormat(
        title="Cloud Carbon Footprint, instances of Azure",
        size="Virtual Machine",
        columns={"Instance vCPUs": _VCPUS, "Instance Memory": _GIB},
    ),
    "sparecores": PeerFormat(
        title="Spare Cores, servers of all vendors",
        size="api_reference",
        columns={
            "vcpus": _VCPUS,
            "memory_amount": Meaning(field="memory_gib", unit=_MIB, whole=True),
            "gpu_count": _DEVICES,
        },
    ),
    "boavizta": PeerFormat(
        title="Boavizta, instances of a cloud",
        size="id",
        columns={"vcpu": _VCPUS, "memory": _GIB},
    ),
    "vmsizes": PeerFormat(
        title="this catalog, the CSV of GET /sizes",
        size="name",
        columns={
            "vcpus": _VCPUS,
            "memory_gib": Meaning(field="memory_gib"),
            "gpu_fraction": Meaning(field="gpu_count"),
            "gpu_memory_gib_per_gpu": Meaning(field="gpu_memory_gib_per_gpu"),
        },
    ),
}
"""The files that can be audited, by the name of their format."""

_OTHER_NAMES = {"instance_type": "size", "price_per_hour": "usd_per_hour", "generated": "date"}
"""Columns that the tables of other clouds in a format call otherwise."""
_MOST_DIGITS = 100
"""Of a number: one with a longer exponent would take hours to be written out."""


def read_claims(file: Path, peer: PeerFormat) -> Iterator[PeerClaim]:
    """Yield the figures that a file states; raises BadData for a file of another format, with line and column."""
    is_json = file.name.removesuffix(".gz").endswith(".json")
    seen: set[tuple[str, str, Fraction | str]] = set()
    for line, row in _read_json(file) if is_json else _read_csv(file, peer):
        size, region = row.get(peer.size, "").strip(), row.get(peer.region or "", "").strip() or None
        for column, meaning in peer.columns.items():
            cell = row.get(column, "").strip() or (meaning.blank if column in row else None) or ""
            if not size or not cell:
                continue
            try:
                (value, digits), is_number = _to_number(cell), True
            except (InvalidOperation, ValueError, ZeroDivisionError):
                value, digits, is_number = Fraction(0), Fraction(0), False
            if " " not in meaning.field:
                key = size, column, value if is_number else cell
                if key in seen:
                    continue  # what is said of a size in each region counts once, but not where it differs
                seen.add(key)
            written = row.get(peer.day or "", "")
            try:
                day = date.fromisoformat(written) if written else None
            except ValueError as error:
                detail = f"{written!r}: must be a date written as YYYY-MM-DD"
                raise BadData(detail, file=str(file), line=line, column=peer.day) from error
            yield PeerClaim(
                size.replace(" ", "_"), region, day, meaning, value * meaning.unit, digits * meaning.unit,
                cell, line, column, is_number,
            )  # fmt: skip


def _to_number(cell: str) -> tuple[Fraction, Fraction]:
    """Return a number and one unit of its last place; a fraction is exact."""
    if "/" in cell:
        return Fraction(cell.lstrip("'")), Fraction(0)
    number = Decimal(cell)
    if not number.is_finite() or len(cell) > _MOST_DIGITS or abs(number.adjusted()) > _MOST_DIGITS:
        raise ValueError
    exponent = number.as_tuple().exponent
    return Fraction(number), Fraction(10) ** int(exponent)


def _read_csv(file: Path, peer: PeerFormat) -> Iterator[tuple[int, dict[str, str]]]:
    with open_csv(file) as opened:
        lines = open_reader(opened, str(file))
        header = [name.strip() for name in next(lines, [])]
        names = {peer.size, peer.region, peer.day, *peer.columns}
        others = {name: other for name, other in _OTHER_NAMES.items() if other in names and other not in header}
        header = [others.get(name, name) for name in header]
        if twice := [name for name in header if name in names and header.count(name) > 1]:
            raise BadData("is in the header twice", file=str(file), line=1, column=twice[0])
        needed = (peer.size, *((peer.region,) if peer.region else ()))
        if missing := [name for name in needed if name not in header]:
            detail = f"is missing from the header; the format has {', '.join([*needed, *peer.columns])}"
            raise BadData(detail, file=str(file), line=1, column=missing[0])
        if not peer.columns.keys() & set(header):
            raise BadData(f"has none of the columns {', '.join(peer.columns)}", file=str(file), line=1)
        for line, cells in whole_rows(lines, str(file), len(header)):
            yield line, dict(zip(header, cells, strict=True))


def _read_json(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the entries of a list: first an entry itself, then each of its regions with the prices there."""
    with open_json(file) as opened:
        number = 0
        for number, entry in enumerate(json_items(opened, file, "item"), 1):
            if not isinstance(entry, dict):
                raise BadData(f"entry {number} is not an object", file=str(file), line=number)
            yield number, {name: str(value) for name, value in entry.items() if not isinstance(value, dict | list)}
            pricing = entry.get("pricing") or {}
            if not isinstance(pricing, dict):
                detail = f"entry {number} has a pricing that is not an object, which has the prices of each region"
                raise BadData(detail, file=str(file), line=number)
            for region, systems in pricing.items():
                prices = {
                    f"{system}.ondemand": str(of_system["ondemand"])
                    for system, of_system in (systems.items() if isinstance(systems, dict) else ())
                    if isinstance(of_system, dict) and "ondemand" in of_system
                }
                yield number, {"instance_type": str(entry.get("instance_type", "")), "region": region, **prices}
        if not number:
            raise BadData("has no list of objects", file=str(file))


Verdict = Literal["agrees", "other_meaning", "stale", "wrong", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("agrees", "other_meaning", "stale", "wrong", "unknown")
VENDOR_KINDS = ("vendor_page", "vendor_api")
_IDENTITIES = ("equals_windows", "cloud_services", "unlike_parent")
"""The rules of prices that are evidence by themselves: a list that changes back and forth may be right."""
CLAIMED = "the audited file"
"""The source that prices of an audited file have while they are checked."""

SOURCE = table_of(Source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of one figure: what it should be, if that is known, and why."""

    claim: PeerClaim
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
    if not claims:
        raise BadData("states no figure of a size: nothing is judged", file=str(file))
    keys = {claim.size: identify(claim.size) for claim in claims}
    names = frozenset(session.execute(select(table_of(Size).c.key)).scalars())
    facts = _load_facts(session, peer.publishers, {claim.meaning.field for claim in claims})
    of_prices = [claim for claim in claims if " " in claim.meaning.field and claim.is_number]
    prices = _judge_prices(session, of_prices, keys, peer, day or today)
    audit = Audit()
    for claim in claims:
        if not claim.is_number:
            audit.add(Judgement(claim=claim, verdict="unknown", evidence="is not a number"))
        elif keys[claim.size] not in names:
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


def _judge_figure(claim: PeerClaim, stated: Sequence[_Stated]) -> Judgement:
    accepted = next((figure for figure in stated if figure.accepted), None)
    if accepted is None:
        return Judgement(claim=claim, verdict="unknown", evidence="no source of the catalog states it")
    ours = [figure for figure in stated if figure.value == accepted.value]
    theirs = [figure.source for figure in stated if figure.kind in VENDOR_KINDS and _is_equal(claim, figure.value)]
    expected = str(accepted.value) if accepted.value.denominator < NANO_USD else str(float(accepted.value))
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


def _is_equal(claim: PeerClaim, value: Fraction) -> bool:
    """Check whether a figure is a value, rounded to the digits that were written; whole numbers are exact."""
    rounded = min(claim.digits / 2, value * _CLOSE) if claim.digits < claim.meaning.unit else 0
    return abs(claim.value - value) <= rounded


def _other_meaning(claim: PeerClaim, value: Fraction) -> str | None:
    """Return how a figure is a value by what the format means by it."""
    if claim.meaning.counts_devices and value.denominator > 1 and claim.value == ceil(value):
        return "counts devices, and a part of one as one"
    rounded_by = 1 if claim.value.denominator == 1 else claim.meaning.unit  # 223,232 MiB are 218 GiB
    if claim.meaning.whole and abs(claim.value - value) < rounded_by:
        return "rounded to a whole number"
    return None


# Prices


def _judge_prices(
    session: Session, claims: Iterable[PeerClaim], keys: Mapping[str, str], peer: PeerFormat, day: date
) -> dict[PeerClaim, Judgement]:
    """Return the judgement of each price, one series of sizes at a time, as prices are checked in an ingest."""
    regions = frozenset(session.execute(select(table_of(Region).c.code)).scalars())
    judgements: dict[PeerClaim, Judgement] = {}
    claimed: dict[str, list[tuple[PeerClaim, ListedPrice]]] = defaultdict(list)
    for claim in claims:
        region, (os, purchase), on = region_key(claim.region or ""), claim.meaning.field.split(" "), claim.day or day
        if region not in regions:
            judgements[claim] = Judgement(claim=claim, verdict="unknown", evidence="the catalog has no such region")
            continue
        key, nano = keys[claim.size], round(claim.value * NANO_USD)
        claimed[key].append((claim, ListedPrice(key, region, os, purchase, on, CLAIMED, on, on, nano)))
    publishers = {row.id: row.publisher for row in session.execute(select(SOURCE.c.id, SOURCE.c.publisher))}
    others = (SOURCE.c.publisher.not_in(sorted(peer.publishers)), SOURCE.c.formula.is_(None))
    for series in prices_by_series(session, *others) if claimed else ():
        sizes = sorted({price.size_key for price in series.prices})
        of_series = [pair for size in sizes for pair in claimed.pop(size, ())]
        to_check = [price for _, price in of_series if price.purchase == "on_demand" and price.nano_usd]
        refusals = (
            check_prices([*series.prices, *to_check], parents=series.parents, series=series.metered) if to_check else []
        )
        refused = {refusal.price: refusal for refusal in refusals}
        by_offer: dict[tuple[str, ...], list[ListedPrice]] = defaultdict(list)
        for price in series.prices:
            by_offer[_offer_of(price)].append(price)
        for claim, price in of_series:
            judgements[claim] = _judge_price(claim, price, by_offer[_offer_of(price)], refused.get(price), publishers)
    for claim, _ in (pair for of_size in claimed.values() for pair in of_size):
        judgements[claim] = Judgement(claim=claim, verdict="unknown", evidence="no other list of the catalog has it")
    return judgements


_offer_of = itemgetter(*range(4))


def _judge_price(
    claim: PeerClaim,
    price: ListedPrice,
    listed: Sequence[ListedPrice],
    refusal: Refusal | None,
    publishers: Mapping[str, str],
) -> Judgement:
    day = price.valid_from
    before = max((run for run in listed if run.valid_from <= day), key=lambda run: run.valid_from, default=None)
    after = min((run for run in listed if run.seen_until >= day), key=lambda run: run.seen_until, default=None)
    nearest = after or before
    expected = to_usd_text(nearest.nano_usd) if nearest else ""
    if (
        refusal is not None
        and refusal.rule in _IDENTITIES
        and nearest is not None
        and not _is_equal(claim, _usd(nearest))
    ):
        evidence = f"{REFUSAL_REASONS[refusal.rule].removeprefix('which ')}: {refusal.evidence}"
        return Judgement(claim=claim, verdict="wrong", expected=expected, evidence=evidence)
    if nearest is None:
        return Judgement(claim=claim, verdict="unknown", evidence="no other list of the catalog has it")
    same = [run for run in listed if _is_equal(claim, _usd(run))]
    if same:
        last = max(same, key=lambda run: run.seen_until)
        newer = [run for run in listed if run not in same and last.seen_until < run.valid_from <= day]
        if not newer:
            return Judgement(claim=claim, verdict="agrees", expected=to_usd_text(last.nano_usd), evidence=_place(last))
        first = min(newer, key=lambda run: run.valid_from)
        evidence = f"right in {_place(last)}; {to_usd_text(first.nano_usd)} in {_place(first)}"
        return Judgement(claim=claim, verdict="stale", expected=to_usd_text(first.nano_usd), evidence=evidence)
    if before and after and price.purchase != "spot" and before.nano_usd == after.nano_usd:
        evidence = f"{expected} in {_place(before)} and in {_place(after)}"
        if publishers[before.source_id] != publishers[after.source_id]:
            return Judgement(claim=claim, verdict="wrong", expected=expected, evidence=evidence)
    evidence = f"{expected} in {_place(nearest)}, which need not be the price of {day}"
    return Judgement(claim=claim, verdict="unknown", expected=expected, evidence=evidence)


def _usd(price: ListedPrice) -> Fraction:
    return Fraction(price.nano_usd, NANO_USD)


def _place(price: ListedPrice) -> str:
    """Return the list that has a price, with the last day on which it had it."""
    return f"{price.source_id} of {price.seen_until}"

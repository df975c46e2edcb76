"""Resolves the claims that sources make about one field to the accepted one, with a reason for each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

from app.catalog.fields import FactValue, to_text
from app.catalog.providers import DEFAULT_PROVIDER, Provider
from app.catalog.readings import AUTHORITY, SourceKind

_TOLERANCE = Decimal("0.001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one source states of a field, after any correction; `title` is its text, as a series' name is written.

    `provider` is the one whose sizes the source describes where it does not say so.
    """

    source: str
    kind: SourceKind
    published_on: date | None
    value: FactValue
    title: str = ""
    correction: str | None = None
    pinned: bool = False
    provider: Provider = DEFAULT_PROVIDER

    def sort_key(
        self, order: Sequence[SourceKind] = AUTHORITY, *, older_first: bool = False
    ) -> tuple[bool, int, int, int, str]:
        """Return the key that sorts the preferred claim first: pinned, by authority, newer, more precise, by source.

        `order` is that of authority on the field. With `older_first` the older claim is preferred. An undated claim
        comes after a dated one.
        """
        # Newest first by the negated ordinal; oldest first by the ordinal less its maximum, so that both are negative
        # and an undated claim, at 1, comes last in either order.
        if self.published_on is None:
            age = 1
        else:
            age = self.published_on.toordinal() * (1 if older_first else -1) - (date.max.toordinal() + 1) * older_first
        return (not self.pinned, order.index(self.kind), age, -_precision(self.value), self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedClaim:
    """A claim with its verdict, `accepted`, `agrees` or `disputed`, and why; the reason says if it was corrected."""

    claim: Claim
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The claim that is accepted for a field, and all of its claims with their verdicts."""

    accepted: Claim
    claims: tuple[ResolvedClaim, ...]

    @property
    def is_disputed(self) -> bool:
        """Whether any source states another value."""
        return any(resolved.verdict == "disputed" for resolved in self.claims)


def resolve(
    claims: Iterable[Claim], order: Sequence[SourceKind] = AUTHORITY, *, older_first: bool = False
) -> Resolution:
    """Resolve the claims of one field: pinned ones first, then by authority, then the newer, then the more precise.

    Claims of the same value agree with the accepted one, the others are disputed. Raises ValueError without any claim.
    """
    ordered = sorted(claims, key=lambda claim: claim.sort_key(order, older_first=older_first))
    if not ordered:
        raise ValueError("a field without claims cannot be resolved")
    accepted = ordered[0]
    if isinstance(accepted.value, str | Decimal):  # of those of the same kind that agree with it the most precise
        peers = (claim for claim in ordered if claim.kind == ordered[0].kind)
        alike = (claim for claim in peers if values_agree(claim.value, ordered[0].value))
        accepted = max(alike, key=lambda claim: _precision(claim.value))
    tie_break = "then the older page keeps it" if older_first else "then by date"
    resolved = tuple(_resolve_claim(claim, accepted, tie_break, alone=len(ordered) == 1) for claim in ordered)
    return Resolution(accepted=accepted, claims=resolved)


def _precision(value: FactValue) -> int:
    """Return the precision of a value: the length of a text, the significant digits of a number."""
    text = to_text(value)
    return len(text) if isinstance(value, str) else len(text.replace(".", "").strip("0"))


def _resolve_claim(claim: Claim, accepted: Claim, tie_break: str, *, alone: bool) -> ResolvedClaim:
    corrected = f"corrected: {claim.correction}; " if claim.correction else ""
    if claim is accepted:
        reason = "the only source" if alone else f"{_describe(claim)}: first by authority, {tie_break}"
        return ResolvedClaim(claim=claim, verdict="accepted", reason=corrected + reason)
    if values_agree(claim.value, accepted.value):
        return ResolvedClaim(claim=claim, verdict="agrees", reason=f"{corrected}says the same as {accepted.source}")
    why = _dispute_reason(claim, accepted)
    reason = f"{corrected}{accepted.source} says {to_text(accepted.value)}, and {why}"
    return ResolvedClaim(claim=claim, verdict="disputed", reason=reason)


def _dispute_reason(claim: Claim, accepted: Claim) -> str:
    if claim.pinned != accepted.pinned:
        return "a pinned source counts before all others"
    if claim.kind != accepted.kind:
        return f"a {_kind_name(accepted.kind)} counts before a {_kind_name(claim.kind)}"
    if claim.published_on != accepted.published_on:
        return (
            f"its date counts first ({accepted.published_on or 'undated'}, this one {claim.published_on or 'undated'})"
        )
    return "of two equal in authority and date the more precise is taken, then the first by name"


def _describe(claim: Claim) -> str:
    pinned = "pinned " if claim.pinned else ""
    return f"{pinned}{_kind_name(claim.kind)} of {claim.published_on or 'no date'}"


def _kind_name(kind: SourceKind) -> str:
    return kind.replace("_", " ").replace("api", "API")


def values_agree(value: FactValue, other: FactValue) -> bool:
    """Check whether two values are the same: equal numbers, or one that is only a more precise text or decimal."""
    if isinstance(value, str) and isinstance(other, str):
        ours, theirs = _tokens(value), _tokens(other)
        return ours <= theirs or theirs <= ours
    exact = (bool, date, str)
    if isinstance(value, exact) or isinstance(other, exact):
        return type(value) is type(other) and value == other
    return abs(Fraction(value) - Fraction(other)) < Fraction(_TOLERANCE) or _rounds_to(value, other)


def _rounds_to(value: int | Decimal | Fraction, other: int | Decimal | Fraction) -> bool:
    """Check whether one of two decimals is the other rounded, as 1788.14 is 1788.139.

    Whole numbers do not count as rounded, so that 16 and 15.9 stay two values.
    """
    if not isinstance(value, Decimal) or not isinstance(other, Decimal):
        return False
    places = min(_places(value), _places(other))
    unit = Decimal(1).scaleb(-places)
    return places > 0 and value.quantize(unit, ROUND_HALF_UP) == other.quantize(unit, ROUND_HALF_UP)


def _places(number: Decimal) -> int:
    return max(0, -int(number.normalize().as_tuple().exponent))


def _tokens(text: str) -> frozenset[str]:
    bare = "".join(character if character.isalnum() or character == "." else " " for character in text.lower())
    return frozenset(bare.split())

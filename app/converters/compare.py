"""Converts similar sizes and comparisons to their schemas."""

from app.converters.adjustments import to_adjustment_out
from app.fit.similarity import DISTANCE_DIGITS, Neighbour, Number, TermDistance
from app.schemas.compare import ComparisonOut, SimilarOut, SimilarPage, TermOut
from app.services.compare import Comparison
from app.services.similar import SimilarSizes


def to_similar_page(answer: SimilarSizes) -> SimilarPage:
    """Convert a page of similar sizes."""
    return SimilarPage(
        size=answer.size.name,
        items=[_neighbour(neighbour) for neighbour in answer.page],
        next_cursor=answer.next_cursor,
        total=answer.total,
    )


def to_comparison_out(answer: Comparison) -> ComparisonOut:
    """Convert a comparison."""
    return ComparisonOut.model_validate(answer)


def _neighbour(neighbour: Neighbour) -> SimilarOut:
    size = neighbour.size
    return SimilarOut(
        size=size.name,
        provider=size.provider,
        distance=round(neighbour.distance, DISTANCE_DIGITS),
        cheaper=neighbour.cheaper,
        bigger=neighbour.bigger,
        status=size.status,
        verified=size.verified,
        series=size.series,
        gpu_model=size.gpu_model,
        gpu_count=round(float(size.gpus), DISTANCE_DIGITS) if size.gpus is not None else None,
        gpu_fraction=str(size.gpus) if size.gpus is not None and size.gpus.denominator > 1 else None,
        gpu_memory_gib=size.gpu_memory_gib,
        vcpus=size.vcpus,
        memory_gib=size.memory_gib,
        region=size.region,
        usd_per_hour=size.usd_per_hour,
        adjustment=to_adjustment_out(size.adjustment),
        terms=[_term(term) for term in neighbour.terms],
    )


def _term(measured: TermDistance) -> TermOut:
    return TermOut(
        term=measured.term.name,
        unit=measured.term.unit,
        wanted=_plain(measured.baseline),
        value=_plain(measured.value),
        difference=measured.difference,
        difference_percent=measured.difference_percent,
        weight=measured.term.weight,
        distance=round(measured.distance, DISTANCE_DIGITS),
        contribution=round(measured.contribution, DISTANCE_DIGITS),
        detail=measured.detail,
    )


def _plain(number: Number | None) -> float | None:
    return float(number) if number is not None else None

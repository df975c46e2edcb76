"""What the given price of a GPU comes to: an hour, a month, the job, a million tokens; money is decimal."""

from decimal import Decimal

from app.fit.estimator.report import CostFigures, TrainingFigures
from app.fit.estimator.serving_speed import Pace
from app.fit.estimator.workload import Gpus
from app.fit.formulas.cost import per_hour, per_job, per_million_tokens, per_month
from app.fit.formulas.quantities import Figure, exact


def serving_cost(gpus: Gpus, count: int, pace: Pace | None) -> CostFigures | None:
    """What serving costs; None without a price."""
    price = gpus.usd_per_gpu_hour
    if price is None:
        return None
    return _cost(count, price, per_million=_per_million(per_hour(count, price), pace) if pace else None)


def _per_million(usd_per_hour: Decimal, pace: Pace) -> Figure:
    """The fastest expected step makes the cheapest tokens."""
    low, mid, high = (
        per_million_tokens(usd_per_hour, decimal(pace.tokens_per_step / step_s))
        for step_s in (pace.likely_s.low, pace.likely_s.mid, pace.likely_s.high)
    )
    return Figure(unit="USD", certainty="estimate", low=low, mid=mid, high=high)


def training_cost(gpus: Gpus, count: int, figures: TrainingFigures, given_hours: Decimal | None) -> CostFigures | None:
    """What training costs; the job is as exact as its GPU-hours. None without a price."""
    price = gpus.usd_per_gpu_hour
    if price is None:
        return None
    hours = figures.compute.gpu_hours
    job = None
    if given_hours is not None:
        job = exact(per_job(given_hours, price), "USD")
    elif hours is not None:
        job = _per_job(hours, price)
    return _cost(count, price, job=job)


def _per_job(hours: Figure, price: Decimal) -> Figure:
    """Scale every end of the hours by the price."""
    ends = {name: getattr(hours, name) for name in ("value", "low", "mid", "high")}
    costs = {name: per_job(decimal(end), price) for name, end in ends.items() if end is not None}
    return Figure(unit="USD", certainty=hours.certainty, **costs)


def _cost(count: int, price: Decimal, *, job: Figure | None = None, per_million: Figure | None = None) -> CostFigures:
    hourly = per_hour(count, price)
    return CostFigures(
        per_hour=exact(hourly, "USD"),
        per_month=exact(per_month(hourly), "USD"),
        per_job=job,
        per_million_tokens=per_million,
    )


def decimal(number: float | Decimal) -> Decimal:
    """The decimal that a number is shown as."""
    return number if isinstance(number, Decimal) else Decimal(repr(number))

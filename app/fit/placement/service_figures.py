"""What an option bears of a service, as figures: replicas, VMs, requests, and what limits them."""

from dataclasses import dataclass

from app.fit.estimator.report import DisaggregationFigures
from app.fit.estimator.service import answered_by_both, disaggregation_figures
from app.fit.estimator.service_level import ServiceLoad, fleet_for, rate_figure, rate_range, request_seconds
from app.fit.estimator.speed_domain import step_evidence
from app.fit.estimator.workload import ServiceLevel
from app.fit.formulas.quantities import Figure, Range, estimate
from app.fit.placement.layouts import Attempt, Speed
from app.fit.placement.machine import Machine
from app.fit.placement.serving import ServingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFigures:
    """What an option bears of a service; `limited_by` says why a replica may not have more requests open."""

    replicas: int
    nodes_at_mean: int
    nodes_at_peak: int
    concurrency_per_replica: int
    max_concurrency_per_replica: int
    limited_by: str
    request: Figure
    requests_per_s: Figure
    peak_requests_per_s: Figure
    mean_requests_per_s: Figure
    disaggregation: DisaggregationFigures | None = None


def service_figures(job: ServingJob, machine: Machine, attempt: Attempt, speed: Speed | None) -> ServiceFigures | None:
    """Return what an option bears of a service; None where none is asked for."""
    load = attempt.load
    if load is None or speed is None:
        return None
    most = load.replica.sequences
    at_most = job.speed(machine, attempt._replace(load=load._replace(sequences=most)))
    if at_most is None:
        return None
    rests_on = step_evidence(speed.departures)
    generating = attempt.replicas - load.prefill_replicas
    answered = _request_seconds(load.level, at_most).divide(most * generating)
    if load.replica.prefill is not None and at_most.step_s is not None:
        answered = answered_by_both(load, at_most.step_s, generating)
    return ServiceFigures(
        replicas=attempt.replicas,
        nodes_at_mean=load.mean_nodes,
        nodes_at_peak=load.needed_nodes,
        concurrency_per_replica=load.sequences,
        max_concurrency_per_replica=most,
        limited_by=load.replica.limit,
        request=estimate(_request_seconds(load.level, speed), "s", rests_on),
        requests_per_s=estimate(answered, "requests/s", rests_on),
        peak_requests_per_s=rate_figure(load.level, _rate(load, speed, peak=True)),
        mean_requests_per_s=rate_figure(load.level, mean_rate(load, speed)),
        disaggregation=disaggregation_figures(load, fleet_for(load.level, load.replica, peak=False), generating),
    )


def mean_rate(load: ServiceLoad, speed: Speed) -> Range:
    """Return the requests a second on average: as given, or of users as their requests take them."""
    return _rate(load, speed, peak=False)


def service_text(load: ServiceLoad, speed: Speed) -> str:
    """Return the part of an explanation that says how a service is met."""
    replica, seconds = load.replica, _request_seconds(load.level, speed)
    first = speed.first_token_s.mid * 1e3 if speed.first_token_s is not None else 0.0
    step = speed.step_s.mid * 1e3 if speed.step_s is not None else 0.0
    read = f", whose prompts {load.prefill_replicas} other copies read" if load.prefill_replicas else ""
    return (
        f"{load.sequences} requests at a time on each copy at the peak{read}, at most {replica.sequences} (limit: "
        f"{replica.limit}), with {first:.0f} ms to the first token, {step:.1f} ms a token and {seconds.mid:.1f} s a "
        "request"
    )


def _request_seconds(level: ServiceLevel, speed: Speed) -> Range:
    if speed.first_token_s is None or speed.step_s is None:
        raise ValueError("a service needs the times of its option")
    return request_seconds(level, speed.first_token_s, speed.step_s)


def _rate(load: ServiceLoad, speed: Speed, *, peak: bool) -> Range:
    return rate_range(load.level, _request_seconds(load.level, speed), peak=peak)

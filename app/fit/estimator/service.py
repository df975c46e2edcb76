"""A service on one placement: the replicas that its load takes, and what limits each of them."""

from dataclasses import dataclass, replace
from math import floor

from app.fit.estimator.copy_speed import copy_speed
from app.fit.estimator.parallelism import Deployment
from app.fit.estimator.report import ServiceReport
from app.fit.estimator.service_level import (
    MAX_SEQUENCES,
    ReplicaLimit,
    ServiceLoad,
    at_peak,
    find_replica_limit,
    rate_figure,
    rate_range,
    replicas_for,
    request_seconds,
)
from app.fit.estimator.serving import ServingSetup, free_memory, sequence_bytes
from app.fit.estimator.serving_speed import serving_speed
from app.fit.estimator.speed_domain import step_evidence
from app.fit.estimator.workload import ServiceLevel
from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.memory import KvCache, kv_bytes_per_sequence
from app.fit.formulas.quantities import Range, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedService:
    """A service with the setup of all its replicas at the peak; of one request at a time where a target is missed."""

    setup: ServingSetup
    load: ServiceLoad
    replicas: int
    replicas_at_mean: int

    @property
    def meets_targets(self) -> bool:
        """Whether a replica takes at least one request within its memory and the targets."""
        return self.load.replica.sequences > 0


def size_service(setup: ServingSetup, level: ServiceLevel, weights: Range, cache: KvCache | None) -> SizedService:
    """Return the fewest replicas that bear the peak; raises InvalidWorkload where a figure of the GPU is missing."""
    gpus = setup.gpus
    needed = {
        "gpus.usable_gib": gpus.usable_gib,
        "gpus.bandwidth_gb_per_s": gpus.bandwidth_gb_per_s,
        "gpus.peak_tflops": gpus.peak_tflops,
    }
    if missing := [name for name, known in needed.items() if known is None]:
        raise InvalidWorkload("serving", f"cannot be answered without {', '.join(missing)}")
    parallelism = setup.deployment.parallelism
    one = replace(setup, deployment=Deployment(parallelism=parallelism, copies=1))
    copy, held = copy_speed(one, weights, cache), _sequences_in_memory(one, weights, cache)
    replica = find_replica_limit(copy, level, held) if held else ReplicaLimit(0, "memory", copy.times(1))
    load = ServiceLoad(copy, replica, level)
    if not replica.sequences:
        return SizedService(setup=one, load=load, replicas=0, replicas_at_mean=0)
    replicas, load = at_peak(load, 1)
    workload = replace(setup.workload, concurrency=load.sequences * replicas)
    deployment = Deployment(parallelism=parallelism, copies=replicas)
    return SizedService(
        setup=replace(setup, workload=workload, deployment=deployment),
        load=load,
        replicas=replicas,
        replicas_at_mean=replicas_for(level, replica, peak=False),
    )


def _sequences_in_memory(setup: ServingSetup, weights: Range, cache: KvCache | None) -> int:
    """Return how many requests fit into the memory of a copy, each group of GPUs with its own."""
    parallelism = setup.deployment.parallelism
    groups, most = parallelism.data, MAX_SEQUENCES
    if setup.workload.kv_bytes_per_sequence is not None:
        sequence = (sequence_bytes(setup, cache) or 0.0) / parallelism.group_gpus
    else:
        sequence = kv_bytes_per_sequence(cache, setup.workload.context_tokens or 0, parallelism) if cache else 0.0
    free = free_memory(setup, weights, cache)
    if free < sequence:
        return 0
    return groups * (min(most, floor(free / sequence)) if sequence else most)


def service_report(service: SizedService, weights: Range, cache: KvCache | None) -> ServiceReport:
    """Return the figures of a service; rates and times are None where a target is missed."""
    load, setup, count = service.load, service.setup, service.setup.gpus.count
    level, of_copy = load.level, setup.deployment.parallelism.gpus
    report = ServiceReport(
        meets_targets=service.meets_targets,
        fits=None if count is None else service.meets_targets and count >= service.replicas * of_copy,
        replicas=service.replicas or None,
        replicas_at_mean=service.replicas_at_mean or None,
        gpus=service.replicas * of_copy or None,
        gpus_at_mean=service.replicas_at_mean * of_copy or None,
        concurrency_per_replica=load.sequences,
        max_concurrency_per_replica=load.replica.sequences,
        limited_by=load.replica.limit,
    )
    most = replace(setup.workload, concurrency=max(1, load.replica.sequences * service.replicas))
    speed, at_most = (serving_speed(one, weights, cache) for one in (setup, replace(setup, workload=most)))
    if not (service.meets_targets and speed and speed.first_token_s and at_most and at_most.first_token_s):
        return report
    rests_on = step_evidence(speed.departures)
    seconds = request_seconds(level, speed.first_token_s, speed.expected_s)
    longest = request_seconds(level, at_most.first_token_s, at_most.expected_s)
    answered = longest.divide(load.replica.sequences * service.replicas)
    return replace(
        report,
        request=estimate(seconds, "s", rests_on),
        requests_per_s=estimate(answered, "requests/s", rests_on),
        peak_requests_per_s=rate_figure(level, rate_range(level, seconds, peak=True)),
        mean_requests_per_s=rate_figure(level, rate_range(level, seconds, peak=False)),
    )

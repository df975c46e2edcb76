"""A service on one placement: the replicas that its load takes, and what limits each of them."""

from dataclasses import dataclass, replace
from math import floor, inf

from app.fit.estimator.copy_speed import copy_speed
from app.fit.estimator.parallelism import Deployment
from app.fit.estimator.report import DisaggregationFigures, ServiceReport
from app.fit.estimator.service_level import (
    MAX_SEQUENCES,
    Fleet,
    ReplicaLimit,
    ServiceLoad,
    at_peak,
    find_replica_limit,
    fleet_for,
    rate_figure,
    rate_range,
    request_seconds,
)
from app.fit.estimator.serving import ServingSetup, free_memory, sequence_bytes
from app.fit.estimator.serving_speed import serving_speed
from app.fit.estimator.speed_domain import step_evidence
from app.fit.estimator.workload import ServiceLevel
from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.memory import KvCache, kv_bytes_per_sequence
from app.fit.formulas.quantities import Range, estimate, single_value


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedService:
    """A service with the setup of all its replicas at the peak; of one request at a time where a target is missed.

    The setup is of the replicas that generate; `load` has how many others read their prompts.
    """

    setup: ServingSetup
    load: ServiceLoad
    replicas: int
    at_mean: Fleet

    @property
    def meets_targets(self) -> bool:
        """Whether a replica takes at least one request within its memory and the targets."""
        return self.load.replica.sequences > 0

    @property
    def gpus(self) -> int:
        """GPUs of all replicas at the peak."""
        return self.replicas * self.setup.deployment.parallelism.gpus


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
    if level.disaggregated and gpus.network is None:
        setup.assumptions.record("gpus.network", "infiniband", "the cache of a prompt moves between VMs")
    parallelism = setup.deployment.parallelism
    one = replace(setup, deployment=Deployment(parallelism=parallelism, copies=1))
    copy, held = copy_speed(one, weights, cache), _sequences_in_memory(one, weights, cache)
    replica = find_replica_limit(copy, level, held) if held else ReplicaLimit(0, "memory", copy.times(1))
    load = ServiceLoad(copy, replica, level)
    if not replica.sequences:
        return SizedService(setup=one, load=load, replicas=0, at_mean=Fleet(0))
    replicas, load = at_peak(load, 1)
    generating = replicas - load.prefill_replicas
    workload = replace(setup.workload, concurrency=load.sequences * generating, prefill_busy=load.prefill_busy)
    deployment = Deployment(parallelism=parallelism, copies=generating)
    return SizedService(
        setup=replace(setup, workload=workload, deployment=deployment),
        load=load,
        replicas=replicas,
        at_mean=fleet_for(level, replica, peak=False),
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
    load, setup, count, at_mean = service.load, service.setup, service.setup.gpus.count, service.at_mean.replicas
    level, of_copy = load.level, setup.deployment.parallelism.gpus
    report = ServiceReport(
        meets_targets=service.meets_targets,
        fits=None if count is None else service.meets_targets and count >= service.gpus,
        replicas=service.replicas or None,
        replicas_at_mean=at_mean or None,
        gpus=service.gpus or None,
        gpus_at_mean=at_mean * of_copy or None,
        concurrency_per_replica=load.sequences,
        max_concurrency_per_replica=load.replica.sequences,
        limited_by=load.replica.limit,
    )
    generating = service.replicas - load.prefill_replicas
    most = replace(setup.workload, concurrency=max(1, load.replica.sequences * generating))
    speed, at_most = (serving_speed(one, weights, cache) for one in (setup, replace(setup, workload=most)))
    if not (service.meets_targets and speed and speed.first_token_s and at_most and at_most.first_token_s):
        return report
    rests_on = step_evidence(speed.departures)
    seconds = request_seconds(level, speed.first_token_s, speed.expected_s)
    longest = request_seconds(level, at_most.first_token_s, at_most.expected_s)
    answered = longest.divide(load.replica.sequences * generating)
    disaggregation = disaggregation_figures(load, service.at_mean, generating)
    if load.replica.prefill is not None:
        answered = answered_by_both(load, at_most.expected_s, generating)
    return replace(
        report,
        disaggregation=disaggregation,
        request=estimate(seconds, "s", rests_on),
        requests_per_s=estimate(answered, "requests/s", rests_on),
        peak_requests_per_s=rate_figure(level, rate_range(level, seconds, peak=True)),
        mean_requests_per_s=rate_figure(level, rate_range(level, seconds, peak=False)),
    )


def disaggregation_figures(load: ServiceLoad, at_mean: Fleet, generating: int) -> DisaggregationFigures | None:
    """Return the figures of a service whose prompts are read by other replicas than generate; None of any other."""
    if load.replica.prefill is None:
        return None
    return DisaggregationFigures(
        prefill_replicas=load.prefill_replicas,
        decode_replicas=generating,
        prefill_replicas_at_mean=at_mean.prefill,
        decode_replicas_at_mean=at_mean.decode,
        prefill_busy=load.prefill_busy or 0.0,
        kv_transfer=estimate(single_value(load.copy.transfer_s or 0.0), "s"),
    )


def answered_by_both(load: ServiceLoad, step_s: Range, generating: int) -> Range:
    """Return the requests a second that replicas which generate, and those which read prompts, answer at most."""
    decoded = step_s.times(load.level.output_tokens).divide(load.replica.sequences * generating)
    prefill = load.replica.prefill
    read = load.prefill_replicas * prefill.most_busy / prefill.prompt_s if prefill is not None else inf
    return Range(low=min(decoded.low, read), mid=min(decoded.mid, read), high=min(decoded.high, read))

"""Sizing by a service level: how many requests a replica takes within the targets, and how many VMs the peak takes.

By Little's law a replica with n open requests answers n / (TTFT + output tokens x TPOT) of them a second. Both times
grow with n, and so does that rate, so the largest n within the targets needs the fewest replicas.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any, NamedTuple

from app.fit.estimator.serving import ServingSetup, sequences_in_memory
from app.fit.estimator.serving_speed import (
    CopyWork,
    Spreads,
    at_least,
    copy_work,
    find_departures,
    find_spreads,
    kv_bytes_read,
    least_prompt,
    least_step,
    prompt_work,
    serving_speed,
    step_evidence,
)
from app.fit.estimator.speed_model import (
    MAX_BUSY,
    Lengths,
    is_disaggregated,
    most_busy,
    prompt_busy_s,
    queue_s,
    request_lengths,
    speed_model,
    transfer_s,
    wait_s,
)
from app.fit.estimator.workload import Confidence, Deployment, InferenceWorkload, ServiceLevel, assume_network
from app.fit.formulas.memory import KvCache
from app.fit.formulas.quantities import (
    Assumptions,
    Evidence,
    Figure,
    InvalidWorkload,
    Range,
    estimate,
    exact,
    single_value,
)
from app.fit.formulas.serving_speed import (
    FIRST_TOKEN,
    STEP,
    StepWork,
    first_token_time,
    prompts_time,
    step_time,
)
from app.fit.results import DisaggregationFigures, ServiceReport, evidence_of


class LoadTimes(NamedTuple):
    """Times of a copy under a load, s: of a step (of `work`), to the first token, of prompts in it, of a request."""

    step: float
    first_token: float
    prompts: float
    request: float
    work: StepWork


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySpeed:
    """Expected times of one copy under any load, the middles of what `serving_speed` gives: for sizing by a load.

    `setup` must have the bandwidth and the peak of its GPUs, and the lengths of a request. `departures` are those from
    the measured runs under any load. `transfer_s` is None where copies read the prompts of their own requests: else
    other copies read them, and this is what moving a cache takes.
    """

    setup: ServingSetup
    work: CopyWork
    lengths: Lengths
    least_prompt_s: float
    departures: tuple[str, ...]
    transfer_s: float | None = None
    _times: dict[int, LoadTimes] = field(default_factory=dict, compare=False)
    _spreads: dict[int, Spreads] = field(default_factory=dict, compare=False)

    def times(self, sequences: int) -> LoadTimes:
        """Return the times with `sequences` on the copy; both grow with them. They are computed once.

        Where other copies read the prompts, no prompt waits for another.
        """
        if (kept := self._times.get(sequences)) is not None:
            return kept
        setup, tokens = self.setup, self.work.yielded
        work = self.work.under(sequences)
        least = least_step(setup, self.work.model, work.kv_read_s, sequences)
        step = max(least, step_time(work, STEP) / tokens)
        alone = prompt_work(setup, work, self.lengths)
        first = max(self.least_prompt_s, first_token_time(alone, step * tokens, STEP, FIRST_TOKEN))
        first += queue_s(work, alone, step * tokens) + (self.transfer_s or 0.0)
        prompts = prompts_time(work, STEP) / tokens
        request = first + self.lengths.output * step
        times = self._times[sequences] = LoadTimes(step, first, prompts, request, work)
        return times

    def spreads(self, sequences: int) -> Spreads:
        """Return the spreads of the times with `sequences` on the copy: those of the ranges that answers show."""
        kept = self._spreads.get(sequences)
        if kept is None:
            kept = find_spreads(self.setup, self.times(sequences).work, self.departures, sequences)
            self._spreads[sequences] = kept
        return kept

    def step_range(self, sequences: int) -> Range:
        """Return the range of a step, s."""
        times = self.times(sequences)
        least = least_step(self.setup, self.work.model, times.work.kv_read_s, sequences)
        return at_least(least, times.step, self.spreads(sequences).step)

    def first_token_range(self, sequences: int) -> Range:
        """Return the range of the time to the first token, s."""
        return at_least(self.least_prompt_s, self.times(sequences).first_token, self.spreads(sequences).first_token)

    def ends(self, sequences: int, level: ServiceLevel) -> tuple[float, float]:
        """Return the ends that the confidence names over the middles, of a step and of a first token."""
        by = CONFIDENCE[level.confidence] if level.confidence is not None else 0.0
        if not by:
            return 1.0, 1.0
        spreads = self.spreads(sequences)
        return spreads.step.high**by, spreads.first_token.high**by

    def deciding(self, sequences: int, level: ServiceLevel) -> LoadTimes:
        """Return the times that targets are compared with: the middles, or the ends that the confidence names.

        Where other copies read the prompts, a prompt waits at least as long as for those that have little to do.
        """
        times, (step, first) = self.times(sequences), self.ends(sequences, level)
        if self.transfer_s is not None:
            times = _waited(times, wait_s(self.prompt_busy_s(), LEAST_BUSY))
        return times._replace(
            step=step * times.step, prompts=step * times.prompts, first_token=first * times.first_token
        )

    def prompt_busy_s(self) -> float:
        """Return how long a prompt occupies a copy that reads nothing but prompts, s."""
        return prompt_busy_s(prompt_work(self.setup, self.work.under(1), self.lengths))


CONFIDENCE: Mapping[Confidence, float] = {"p50": 0.0, "p80": 0.66, "p95": 1.28}
"""Distance of a share of the runs from the middle, over that of nine tenths, where a range ends; of a normal spread.

In logarithms: 0.84 and 1.64 standard deviations over 1.28.
"""


def copy_speed(setup: ServingSetup, weights: Range, cache: KvCache | None) -> CopySpeed:
    """Return the times of a copy as a function of its load; raises ValueError where a request has no lengths."""
    lengths = request_lengths(setup.workload)
    if lengths is None:
        raise ValueError("the lengths of a request are unknown")
    model = speed_model(setup, weights)
    return CopySpeed(
        setup=setup,
        work=copy_work(setup, model, lengths, kv_bytes_read(setup, cache, lengths)),
        lengths=lengths,
        least_prompt_s=least_prompt(setup, model, lengths),
        departures=find_departures(setup, lengths, typical=model.of_typical_shape),
        transfer_s=transfer_s(setup, cache, lengths) if is_disaggregated(setup) else None,
    )


MAX_SEQUENCES = 1024
"""Requests that an engine generates for at a time: vLLM's default of max_num_seqs for a server on H100 and newer."""
SECONDS_PER_DAY = 86_400
_ROUNDING = 1e-9
"""Relative error of floats that does not call for another replica."""


class PrefillCopy(NamedTuple):
    """A replica that only reads prompts: how long each is read, s, and the largest share of the time that it may read.

    `copy` are the times of the replicas that generate.
    """

    copy: CopySpeed
    prompt_s: float
    most_busy: float

    @property
    def seconds(self) -> float:
        """The time of a replica that a prompt takes, s: with data-parallel attention each group reads one at a time."""
        return self.prompt_s / self.copy.setup.deployment.parallelism.data


class Fleet(NamedTuple):
    """Replicas that generate, and those that only read prompts; none where all do both."""

    decode: int
    prefill: int = 0

    @property
    def replicas(self) -> int:
        """All of them."""
        return self.decode + self.prefill


class ReplicaLimit(NamedTuple):
    """The most requests that a replica may have open, and what limits them; 0 where even one misses a target.

    `limit` is memory, engine (MAX_SEQUENCES of each group with its own attention), tpot, ttft or, where prompts take
    most of a step that is too long, prefill. `times` are those with that many requests, or with one. `prefill` are the
    replicas that read their prompts, where others do.
    """

    sequences: int
    limit: str
    times: LoadTimes
    prefill: PrefillCopy | None = None


class ServiceLoad(NamedTuple):
    """What an option sustains: requests a second of the service at its peak and on average, and at most.

    `needed_nodes` and `mean_nodes` are the VMs that the peak and the average take. `sequences` are the requests that
    each replica has open at the peak, of those that generate; `prefill_replicas` only read prompts, and do so
    `prefill_busy` of the time. Rates and sequences are 0 where the load is not borne.
    """

    copy: CopySpeed
    replica: ReplicaLimit
    level: ServiceLevel
    needed_nodes: int = 0
    mean_nodes: int = 0
    sequences: int = 0
    max_requests_per_s: float = 0.0
    peak_requests_per_s: float = 0.0
    mean_requests_per_s: float = 0.0
    prefill_replicas: int = 0
    prefill_busy: float | None = None


def at_service_level(
    workload: InferenceWorkload, level: ServiceLevel, assumptions: Assumptions
) -> tuple[InferenceWorkload, ServiceLevel]:
    """Return the workload of one request of a service, and the level with its defaults.

    Raises InvalidWorkload where the workload says what the level does, or keeps fewer tokens than a request has.
    """
    if workload.prompt_tokens is not None:
        raise InvalidWorkload("inference.prompt_tokens", "and serving.input_tokens say the same thing: give one")
    if workload.output_tokens is not None:
        raise InvalidWorkload("inference.output_tokens", "and serving.output_tokens say the same thing: give one")
    if workload.concurrency is not None:
        detail = "cannot be given with serving: how many requests are open follows from its load and targets"
        raise InvalidWorkload("inference.concurrency", detail)
    if workload.arrivals is not None:
        raise InvalidWorkload("inference.arrivals", "cannot be given with serving: its requests arrive at random")
    tokens, context = level.input_tokens + level.output_tokens, workload.context_tokens
    if context is not None and context < tokens:
        detail = f"{context} is less than serving.input_tokens and serving.output_tokens together, {tokens}"
        raise InvalidWorkload("inference.context_tokens", detail)
    hit = assumptions.get(level.prefix_cache_hit, "serving.prefix_cache_hit")
    think = assumptions.get(level.think_time_s, "serving.think_time_s") if level.users is not None else 0.0
    peak = assumptions.get(level.peak_to_mean, "serving.peak_to_mean")
    request = replace(
        workload,
        prompt_tokens=level.input_tokens,
        output_tokens=level.output_tokens,
        prefix_cache_hit=hit,
        concurrency=1,
        arrivals="random",
        prefill_busy=0.0 if level.disaggregated else None,
    )
    return request, replace(level, prefix_cache_hit=hit, think_time_s=think, peak_to_mean=peak)


def is_lenient(copy: CopySpeed, level: ServiceLevel) -> bool:
    """Whether the low end of a time may meet a target: unless a confidence is asked for, or others read the prompts."""
    return level.confidence is None and copy.transfer_s is None


def find_replica_limit(copy: CopySpeed, level: ServiceLevel, in_memory: int) -> ReplicaLimit:
    """Find the most requests that a replica may have open, of at least one that its memory holds.

    The share of a target that a time takes grows with the requests, nearly in proportion: where a straight line through
    two of its points meets 1 is tried first, then the middle, so that bisection ends after few steps. Where one request
    misses a target by the middle of its time and meets it by the low end, it is taken alone, unless a confidence is
    asked for.
    """
    engine = MAX_SEQUENCES * copy.setup.deployment.parallelism.data
    most = min(in_memory, engine)
    low, times = 1, copy.deciding(1, level)
    share = share_of_target(times, level)
    if share > 1:
        taken = 0
        if is_lenient(copy, level):
            low_end = times._replace(step=copy.step_range(1).low, first_token=copy.first_token_range(1).low)
            taken = int(share_of_target(low_end, level) <= 1)
        return ReplicaLimit(taken, _missed(times, level), copy.times(1))
    over = copy.deciding(most, level)
    over_share = share_of_target(over, level)
    if over_share <= 1:
        return _with_prefill(copy, level, ReplicaLimit(most, "memory" if most < engine else "engine", copy.times(most)))
    high, straight = most, True
    while high - low > 1:
        middle = (low + high) // 2
        if straight:
            middle = min(high - 1, max(low + 1, floor(low + (1 - share) * (high - low) / (over_share - share))))
        middle_times = copy.deciding(middle, level)
        middle_share = share_of_target(middle_times, level)
        straight = not straight or 0.99 < middle_share <= 1  # noqa: PLR2004  # nearly there
        if middle_share <= 1:
            low, share = middle, middle_share
        else:
            high, over, over_share = middle, middle_times, middle_share
    return _with_prefill(copy, level, ReplicaLimit(low, _missed(over, level), copy.times(low)))


def fewest(holds: Callable[[int], bool], least: int, most: int) -> int:
    """Return the least number from `least` on that holds, by binary search: all above it hold, `most` at the latest."""
    return least + bisect_left(range(least, most), True, key=holds)


def _with_prefill(copy: CopySpeed, level: ServiceLevel, limit: ReplicaLimit) -> ReplicaLimit:
    """Return a limit with the replicas that read prompts, where others than those that generate do.

    The target of the first token leaves a prompt the more time to wait, and so its replica the more to do, the shorter
    the steps are: of the numbers of requests within the limit that is taken with which a request takes least of both.
    """
    if copy.transfer_s is None:
        return limit
    prompt_s = copy.prompt_busy_s()

    def prefill_beside(sequences: int) -> PrefillCopy:
        return PrefillCopy(copy, prompt_s, _most_busy(copy, level, prompt_s, sequences))

    def seconds(sequences: int) -> float:
        """Return the time of replicas of both kinds that a request takes, with `sequences` on each that generates."""
        prefill = prefill_beside(sequences)
        return level.output_tokens * copy.times(sequences).step / sequences + prefill.seconds / prefill.most_busy

    sequences = fewest(lambda count: seconds(count) <= seconds(count + 1), 1, limit.sequences)
    prefill = prefill_beside(sequences)
    name = limit.limit if sequences == limit.sequences else "ttft"
    times = _waited(copy.times(sequences), wait_s(prompt_s, prefill.most_busy))
    return ReplicaLimit(sequences, name, times, prefill)


LEAST_BUSY = 0.01
"""A target that leaves replicas which read prompts less to do than this share of the time is not met."""


def _most_busy(copy: CopySpeed, level: ServiceLevel, prompt_s: float, sequences: int) -> float:
    """Return the largest share of the time that a replica may read prompts, with requests within the limit."""
    if level.ttft_ms is None:
        return MAX_BUSY
    spare = level.ttft_ms / 1e3 / copy.ends(sequences, level)[1] - copy.times(sequences).first_token
    return max(LEAST_BUSY, most_busy(prompt_s, spare))


def _waited(times: LoadTimes, seconds: float) -> LoadTimes:
    return times._replace(first_token=times.first_token + seconds, request=times.request + seconds)


def share_of_target(times: LoadTimes, level: ServiceLevel) -> float:
    """Return the larger share that a time takes of its target; 0 without targets."""
    step = times.step * 1e3 / level.tpot_ms if level.tpot_ms is not None else 0.0
    return max(step, times.first_token * 1e3 / level.ttft_ms) if level.ttft_ms is not None else step


def _missed(times: LoadTimes, level: ServiceLevel) -> str:
    """Return which target these times miss; where the prompts of others take most of a step, prefill."""
    if level.tpot_ms is not None and times.step * 1e3 > level.tpot_ms:
        return "prefill" if times.prompts > times.step / 2 else "tpot"
    return "ttft"


def requests_per_s(level: ServiceLevel, request_s: float, *, peak: bool) -> float:
    """Return the requests a second of a service whose requests take `request_s`, on average or at its peak."""
    factor = level.peak_to_mean or 1.0 if peak else 1.0
    if level.users is not None:
        return factor * level.users / (request_s + (level.think_time_s or 0.0))
    if level.requests_per_second is not None:
        return factor * level.requests_per_second
    return factor * (level.requests_per_day or 0.0) / SECONDS_PER_DAY


def fleet_for(level: ServiceLevel, replica: ReplicaLimit, *, peak: bool) -> Fleet:
    """Return the fewest replicas of each kind for the average or the peak: at least one of each that there is.

    Users send the more requests the faster these are answered: replicas that read prompts are enough for those of users
    whose prompts never wait.
    """
    prefill, times = replica.prefill, replica.times
    if prefill is None:
        return Fleet(_at_least_one(requests_per_s(level, times.request, peak=peak) * times.request / replica.sequences))
    answered = times.request - wait_s(prefill.prompt_s, prefill.most_busy)
    rate = requests_per_s(level, answered, peak=peak)
    decode = _at_least_one(rate * level.output_tokens * times.step / replica.sequences)
    if level.users is not None:
        open_requests = _fewest_sequences(prefill, level, replica.sequences, Fleet(decode), peak=peak)
        rate = requests_per_s(level, prefill.copy.times(open_requests).request, peak=peak)
    return Fleet(decode, _at_least_one(rate * prefill.seconds / prefill.most_busy))


def _fewest_sequences(prefill: PrefillCopy, level: ServiceLevel, most: int, fleet: Fleet, *, peak: bool) -> int:
    """Find the fewest requests on each replica that generates with which all together answer what is asked."""

    def answer(sequences: int) -> bool:
        times, answered = _generated(prefill, level, sequences, fleet)
        return answered >= requests_per_s(level, times.request, peak=peak) * (1 - _ROUNDING)

    return fewest(answer, 1, most)


def _generated(prefill: PrefillCopy, level: ServiceLevel, sequences: int, fleet: Fleet) -> tuple[LoadTimes, float]:
    """Return the times with `sequences` requests on each replica that generates, and the requests a second.

    Without replicas that read prompts no prompt waits.
    """
    times = prefill.copy.times(sequences)
    answered = fleet.decode * sequences / (level.output_tokens * times.step)
    if not fleet.prefill:
        return times, answered
    busy = min(prefill.most_busy, answered * prefill.seconds / fleet.prefill)
    return _waited(times, wait_s(prefill.prompt_s, busy)), answered


def _at_least_one(needed: float) -> int:
    return max(1, ceil(needed * (1 - _ROUNDING)))


def at_peak(load: ServiceLoad, replicas: int) -> tuple[int, ServiceLoad]:
    """Return the replicas that have a request at the peak, of `replicas`, and the load with the requests of each."""
    copy, level, replica = load.copy, load.level, load.replica
    if replica.prefill is not None:
        return _disaggregated_at_peak(load, replica.prefill, replicas)
    alone_s = copy.times(1).request
    busy = ceil(requests_per_s(level, alone_s, peak=True) * alone_s)
    used = max(fleet_for(level, replica, peak=True).replicas, min(replicas, busy))

    def yield_the_rate(sequences: int) -> bool:
        request_s = copy.times(sequences).request
        return used * sequences >= requests_per_s(level, request_s, peak=True) * request_s * (1 - _ROUNDING)

    sequences = fewest(yield_the_rate, 1, replica.sequences)
    request_s = copy.times(sequences).request
    return used, load._replace(
        sequences=sequences,
        max_requests_per_s=used * replica.sequences / replica.times.request,
        peak_requests_per_s=requests_per_s(level, request_s, peak=True),
        mean_requests_per_s=requests_per_s(level, request_s, peak=False),
    )


def _disaggregated_at_peak(load: ServiceLoad, prefill: PrefillCopy, replicas: int) -> tuple[int, ServiceLoad]:
    """Return the replicas and their load at the peak where some only read prompts: the fewest, all others generate."""
    copy, level, replica = load.copy, load.level, load.replica
    fewest, alone = fleet_for(level, replica, peak=True), copy.times(1)
    generating = ceil(requests_per_s(level, alone.request, peak=True) * level.output_tokens * alone.step)
    fleet = Fleet(max(fewest.decode, min(replicas - fewest.prefill, generating)), fewest.prefill)

    sequences = _fewest_sequences(prefill, level, replica.sequences, fleet, peak=True)
    times, _ = _generated(prefill, level, sequences, fleet)
    rate = requests_per_s(level, times.request, peak=True)
    decoded = fleet.decode * replica.sequences / (level.output_tokens * replica.times.step)
    return fleet.replicas, load._replace(
        sequences=sequences,
        prefill_replicas=fleet.prefill,
        prefill_busy=min(prefill.most_busy, rate * prefill.seconds / fleet.prefill),
        max_requests_per_s=min(decoded, fleet.prefill * prefill.most_busy / prefill.seconds),
        peak_requests_per_s=rate,
        mean_requests_per_s=requests_per_s(level, times.request, peak=False),
    )


def request_seconds(level: ServiceLevel, first_token_s: Range, step_s: Range) -> Range:
    """Return the time of a whole request, s: TTFT + output tokens x TPOT."""
    return first_token_s + step_s.times(level.output_tokens)


def rate_range(level: ServiceLevel, request_s: Range, *, peak: bool) -> Range:
    """Return the requests a second of a service, on average or at its peak; of users those that their requests take."""
    times = (request_s.high, request_s.mid, request_s.low)
    low, mid, high = (requests_per_s(level, seconds, peak=peak) for seconds in times)
    return Range(low=low, mid=mid, high=high)


def _rate_figure(level: ServiceLevel, request_s: Range, *, peak: bool) -> Figure:
    """Return a rate: exact where it is given, of users an estimate."""
    rate = rate_range(level, request_s, peak=peak)
    return exact(rate.mid, "requests/s") if level.users is None else estimate(rate, "requests/s")


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
    """Return the fewest replicas that sustain the peak; raises InvalidWorkload where a figure of the GPU is missing."""
    gpus = setup.gpus
    needed = ("gpus.usable_gib", "gpus.bandwidth_gb_per_s", "gpus.peak_tflops")
    if missing := [name for name in needed if getattr(gpus, name.removeprefix("gpus.")) is None]:
        raise InvalidWorkload("serving", f"cannot be answered without {', '.join(missing)}")
    if level.disaggregated:
        if gpus.network is None:
            setup.assumptions.record("gpus.network", "infiniband", "the cache of a prompt moves between VMs")
        assume_network(gpus, setup.assumptions)  # `transfer_s` takes the same
    parallelism = setup.deployment.parallelism
    single = replace(setup, deployment=Deployment(parallelism=parallelism, copies=1))
    copy, most = copy_speed(single, weights, cache), MAX_SEQUENCES * parallelism.data
    in_memory = sequences_in_memory(single, weights, cache)
    held = most if in_memory is None else min(most, floor(in_memory.mid))
    replica = find_replica_limit(copy, level, held) if held else ReplicaLimit(0, "memory", copy.times(1))
    load = ServiceLoad(copy, replica, level)
    if not replica.sequences:
        return SizedService(setup=single, load=load, replicas=0, at_mean=Fleet(0))
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
    speed, at_most = (serving_speed(variant, weights, cache) for variant in (setup, replace(setup, workload=most)))
    if not (service.meets_targets and speed and speed.first_token_s and at_most and at_most.first_token_s):
        return report
    seconds = request_seconds(level, speed.first_token_s, speed.step_s)
    longest = request_seconds(level, at_most.first_token_s, at_most.step_s)
    rests_on = step_evidence(speed.departures)
    return replace(report, **load_figures(load, generating, seconds, (longest, at_most.step_s), rests_on))


def load_figures(
    load: ServiceLoad, generating: int, request_s: Range, at_most_s: tuple[Range, Range], rests_on: Evidence
) -> dict[str, Any]:
    """Return the figures of a service, as both reports have them, with `generating` replicas that generate.

    `at_most_s` are the times of a request and of a step with the most requests.
    """
    level, longest_s, step_s = load.level, *at_most_s
    sequences = load.replica.sequences * generating
    answered, disaggregation, prefill = longest_s.divide(sequences), None, load.replica.prefill
    if prefill is not None:
        decoded = step_s.times(level.output_tokens).divide(sequences)
        at_mean = fleet_for(level, load.replica, peak=False)
        spread, read = prefill.copy.spreads(1).first_token, load.prefill_replicas * prefill.most_busy / prefill.prompt_s
        answered = Range(
            low=min(decoded.low, read / spread.high),
            mid=min(decoded.mid, read),
            high=min(decoded.high, read / spread.low),
        )
        disaggregation = DisaggregationFigures(
            prefill_replicas=load.prefill_replicas,
            decode_replicas=generating,
            prefill_replicas_at_mean=at_mean.prefill,
            decode_replicas_at_mean=at_mean.decode,
            prefill_busy=load.prefill_busy or 0.0,
            kv_transfer=estimate(single_value(load.copy.transfer_s or 0.0), "s", evidence_of("kv_transfer")),
        )
    return {
        "request": estimate(request_s, "s", rests_on),
        "requests_per_s": estimate(answered, "requests/s", rests_on),
        "peak_requests_per_s": _rate_figure(level, request_s, peak=True),
        "mean_requests_per_s": _rate_figure(level, request_s, peak=False),
        "disaggregation": disaggregation,
    }

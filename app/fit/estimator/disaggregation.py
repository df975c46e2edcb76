"""Prefill and decoding on replicas of their own: how long a prompt occupies one, waits for it, and moves its cache.

Both kinds of replicas are copies with the same split. One that generates reads no prompts, so its step has no part of
them; one that reads prompts reads them one after another. Nothing here is fitted: the constants are those of replicas
that do both, and `python -m benchmarks.accuracy --only decode_step_disaggregated` compares them with runs that do not.
"""

from app.fit.estimator.serving import ServingSetup, sequence_bytes
from app.fit.estimator.speed_model import Lengths
from app.fit.formulas.links import HOPS
from app.fit.formulas.memory import KvCache, kv_bytes_per_sequence
from app.fit.formulas.serving_constants import FIRST_TOKEN, STEP
from app.fit.formulas.serving_speed import StepWork, launch_time, prompt_time

MAX_BUSY = 0.8
"""The largest share of the time that a replica reads prompts, where no target of the first token asks for less.

A rule of thumb of queues: a prompt then waits twice as long as it is read.
"""


def is_disaggregated(setup: ServingSetup) -> bool:
    """Whether prompts are read by replicas of their own."""
    return setup.workload.prefill_busy is not None


def prompt_busy_s(work: StepWork) -> float:
    """Return how long a prompt occupies the replica that reads it, s; `work` is that of one prompt."""
    return prompt_time(work, STEP) + launch_time(work, FIRST_TOKEN)


def wait_s(prompt_s: float, busy: float) -> float:
    """Return the mean time that a prompt waits for those before it, s: S u / (2 (1 - u)) with u < 1 the busy share.

    Prompts of one length that arrive at random (a queue M/D/1). Source: the formula of Pollaczek and Khinchine.
    """
    return prompt_s * busy / (2 * (1 - busy))


def most_busy(prompt_s: float, spare_s: float) -> float:
    """Return the largest busy share with which a prompt waits no longer than the target leaves: 2 w / (S + 2 w)."""
    return min(MAX_BUSY, 2 * spare_s / (prompt_s + 2 * spare_s))


def transfer_s(setup: ServingSetup, cache: KvCache | None, lengths: Lengths) -> float:
    """Return the time in which the cache of a prompt moves to the replica that generates, s.

    Every GPU sends its part to its counterpart over the network, InfiniBand unless it is known, after the whole prompt
    is read: engines that send layer by layer hide most of it. The whole prompt moves, also what is cached of it.
    """
    parallelism = setup.deployment.parallelism
    given, context = setup.workload.kv_bytes_per_sequence, setup.workload.context_tokens
    if given is not None or cache is None:
        share = lengths.prompt / context if context else 1.0
        size = (sequence_bytes(setup, cache) or 0.0) * min(1.0, share) / parallelism.group_gpus
    else:
        size = kv_bytes_per_sequence(cache, lengths.prompt, parallelism)
    hop = HOPS[setup.gpus.network or "infiniband"]
    return hop.latency_s + size / hop.bytes_per_s

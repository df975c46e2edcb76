"""The constants of serving speed, their ranges, and what they were measured on."""

from collections.abc import Mapping
from typing import NamedTuple

from app.fit.formulas.serving_speed import FirstTokenConstants, StepConstants


class Spread(NamedTuple):
    """The measured time over the expected one: that which a tenth of the runs is below, and above."""

    low: float
    high: float


# Fitted, by `python -m benchmarks.calibrate --write`.
STEP = StepConstants(
    dense_read=1.152,
    expert_read=1,
    dequantize=0.4412,
    kv_read=1,
    compute=1.882,
    layer_us=41.91,
    latent_us=17.82,
    expert_us=4.227,
    doubling_us=6.653,
    collective=1.855,
    sequence_us=17.32,
    prefill_dense=1.195,
    prefill_experts=4.981,
    sglang=0.1334,
    vllm=0.09017,
)
FIRST_TOKEN = FirstTokenConstants(
    base_ms=33.65, layer_ms=0.144, latent_ms=0.5461, waiting=0.06654, steps=5.346, sglang=1.491, vllm=-0.2265
)
STEP_SPREAD: Mapping[str, Spread] = {"dense": Spread(0.864, 1.17), "experts": Spread(0.758, 1.3)}
FIRST_TOKEN_SPREAD: Mapping[str, Spread] = {"dense": Spread(0.585, 2.17), "experts": Spread(0.496, 2.14)}
# End of what is fitted.

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
    dense_read=1.156,
    expert_read=1,
    dequantize=0.4323,
    kv_read=1,
    compute=1.5,
    layer_us=44.39,
    latent_us=26.92,
    expert_us=4.205,
    doubling_us=6.29,
    collective=2.003,
    sequence_us=13.58,
    prefill_dense=1.229,
    prefill_experts=5.17,
    sglang_layer_us=677.2,
    sglang_experts=0.09801,
    vllm=0.08534,
    amd=0.4993,
    amd_latent=0.9662,
)
FIRST_TOKEN = FirstTokenConstants(
    base_ms=18.79,
    steps=1.555,
    trtllm_ms=30.22,
    trtllm_steps=4.465,
    doubling_ms=0.08024,
    waiting=0.06198,
    sglang_waiting=0.1493,
)
STEP_SPREAD: Mapping[str, Spread] = {
    "dense": Spread(0.85, 1.16),
    "experts": Spread(0.76, 1.31),
    "unseen": Spread(0.766, 1.66),
    "amd": Spread(0.763, 1.27),
}
FIRST_TOKEN_SPREAD: Mapping[str, Spread] = {"steady": Spread(0.633, 2.05), "burst": Spread(0.54, 1.71)}
MEASURED_MODELS = frozenset(
    [
        (32, 4096, 0, "sglang"),
        (32, 4096, 0, "trtllm"),
        (36, 2880, 128, "trtllm"),
        (36, 2880, 128, "vllm"),
        (60, 4096, 512, "sglang"),
        (61, 7168, 256, "sglang"),
        (61, 7168, 256, "trtllm"),
        (61, 7168, 384, "vllm"),
        (62, 3072, 256, "vllm"),
        (80, 8192, 0, "trtllm"),
        (80, 8192, 0, "vllm"),
        (94, 4096, 128, "trtllm"),
        (94, 4096, 128, "vllm"),
    ]
)
# End of what is fitted.

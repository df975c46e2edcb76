"""Every family of measurements. To add one: a module with its points, and a line here."""

from benchmarks.accuracy.memory import CHECKPOINT_WEIGHTS, CONFIG_PARAMETERS, KV_CAPACITY, STANDARD_DECODERS
from benchmarks.accuracy.points import Family
from benchmarks.accuracy.reported import DECODE_STEP_AMD, DECODE_STEP_REPORTED, TTFT
from benchmarks.accuracy.serving import (
    DECODE_STEP,
    DECODE_STEP_DATA_PARALLEL,
    DECODE_STEP_DISAGGREGATED,
    TTFT_BURST,
    TTFT_DATA_PARALLEL,
)
from benchmarks.accuracy.throughput import MAX_THROUGHPUT
from benchmarks.accuracy.training import TRAINING_HOURS, TRAINING_MEMORY, TRAINING_RATE

FAMILIES: tuple[Family, ...] = (
    DECODE_STEP,
    DECODE_STEP_REPORTED,
    DECODE_STEP_AMD,
    DECODE_STEP_DATA_PARALLEL,
    DECODE_STEP_DISAGGREGATED,
    TTFT,
    TTFT_BURST,
    TTFT_DATA_PARALLEL,
    MAX_THROUGHPUT,
    TRAINING_RATE,
    TRAINING_HOURS,
    TRAINING_MEMORY,
    KV_CAPACITY,
    CHECKPOINT_WEIGHTS,
    CONFIG_PARAMETERS,
    STANDARD_DECODERS,
)

"""The family of published maximum throughputs, in throughput.csv.

The publishers name the lengths of requests and the rate. `concurrency` is how many sequences the KV cache holds, at
most 2,048 a replica and as many as the run has requests (1,000 to 30,000); the cache is of 8 bits. NVIDIA's runs of MoE
on several GPUs have data-parallel attention, and are left out.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from benchmarks.accuracy.estimates import estimate, to_point
from benchmarks.accuracy.points import Family, Point

TABLE = Path(__file__).with_suffix(".csv")
FIGURE = "inference.decode.expected_tokens_per_s"


def _points() -> Iterator[Point]:
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            body = {
                "model": row["model"],
                "inference": {
                    "dtype": row["dtype"],
                    "kv_dtype": "fp8",
                    "prompt_tokens": int(row["prompt_tokens"]),
                    "output_tokens": int(row["output_tokens"]),
                    "concurrency": int(row["concurrency"]),
                    "tensor_parallel": int(row["tensor_parallel"]),
                    "engine": "trtllm",
                    "allow_longer_context": True,
                },
                "gpus": {
                    "count": int(row["gpus"]),
                    "bandwidth_gb_per_s": float(row["bandwidth_gb_per_s"]),
                    "peak_tflops": float(row["peak_tflops"]),
                    "link": row["link"],
                },
            }
            labels = {"model": row["model"], "gpu": row["gpu"], "dtype": row["dtype"]}
            yield to_point(estimate(body), FIGURE, float(row["tokens_per_s"]), labels)


MAX_THROUGHPUT = Family(
    id="max_throughput",
    title="Maximum tokens per second of serving",
    figure=FIGURE,
    unit="tokens/s",
    source="NVIDIA TensorRT-LLM's overview of performance, MLPerf Inference, Azure's High Performance Computing blog",
    license="Apache-2.0; facts",
    points=_points,
)

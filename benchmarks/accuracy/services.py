"""`python -m benchmarks.accuracy.services`: ten services, the fewest GPUs for each, and how that is computed by hand.

services.csv has, for each, the fewest GPUs that `aiconfigurator cli recommend` found, version 0.12.0 of PyPI (Apache
License 2.0) with `--backend trtllm --strict-sla`, without and with disaggregation; empty where it gave none.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from app.errors import BadWorkload
from app.fit.results import ServiceReport
from benchmarks.accuracy.estimates import estimate, figure_range

TABLE = Path(__file__).with_suffix(".csv")
GPUS = {
    "H100": (79.2, 3350.0, {"bf16": 989.0, "fp8": 1979.0}, "nvlink"),
    "H200": (139.8, 4800.0, {"bf16": 989.0, "fp8": 1979.0}, "nvlink"),
    "B200": (178.4, 8000.0, {"bf16": 2250.0, "fp8": 4500.0}, "nvlink"),
    "L40S": (44.4, 864.0, {"bf16": 362.0, "fp8": 733.0}, "pcie"),
}
"""Usable GiB, GB/s, dense TFLOP/s by type, and the link of each GPU."""
MOST_GPUS = 8
"""Of a copy: those of a server."""


class Sized(NamedTuple):
    """A service on its best split: tensor ranks, groups with attention of their own, and the times of a request, s."""

    report: ServiceReport
    tensor: int
    groups: int
    first_token_s: float
    step_s: float


def questions() -> Iterator[dict[str, str]]:
    """Yield the rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def fewest_gpus(row: dict[str, str], *, disaggregated: bool = False) -> Sized | None:
    """Return the split of a copy over the GPUs of a server that takes fewest of them in all; None where none does."""
    sizes = [1 << k for k in range(MOST_GPUS.bit_length())]
    splits = [(t, d, e) for t in sizes for d in sizes if t * d <= MOST_GPUS for e in {1, t if d == 1 else t * d}]
    found = [sized for split in splits if (sized := _sized(row, *split, disaggregated=disaggregated)) is not None]
    return min(found, key=lambda one: one.report.gpus or 0, default=None)


def _sized(row: dict[str, str], tensor: int, groups: int, experts: int, *, disaggregated: bool) -> Sized | None:
    usable, bandwidth, peaks, link = GPUS[row["gpu"]]
    inference: dict[str, Any] = {"tensor_parallel": tensor, "dtype": row["dtype"], "engine": "trtllm"}
    inference |= {"data_parallel_attention": groups} if groups > 1 else {}
    inference |= {"expert_parallel": experts} if experts > 1 else {}
    numbers = ("input_tokens", "output_tokens", "requests_per_second", "ttft_ms", "tpot_ms")
    body = {
        "model": row["model"],
        "inference": inference,
        "serving": {name: float(row[name]) for name in numbers} | {"disaggregated": disaggregated},
        "gpus": {
            "usable_gib": usable,
            "bandwidth_gb_per_s": bandwidth,
            "peak_tflops": peaks.get(row["dtype"], peaks["bf16"]),
            "link": link,
        },
    }
    try:
        answer = estimate(body)
    except BadWorkload:
        return None  # the heads, or the experts, cannot be split so
    if answer.serving is None or not answer.serving.meets_targets:
        return None
    times = [figure_range(answer, path)[1] / 1e3 for path in ("inference.ttft", "inference.decode.expected_step")]
    return Sized(answer.serving, tensor, groups, *times)


def by_hand(row: dict[str, str], sized: Sized) -> str:
    """Return the answer by Little's law, in words: requests of a copy / (TTFT + output tokens x TPOT), and the rest."""
    report, output, rate = sized.report, float(row["output_tokens"]), float(row["requests_per_second"])
    request = sized.first_token_s + output * sized.step_s
    each = report.concurrency_per_replica / request
    split = f"TP {sized.tensor}" + (f" x {sized.groups} groups" if sized.groups > 1 else "")
    most = f"at most {report.max_concurrency_per_replica}: {report.limited_by}"
    return (
        f"{report.concurrency_per_replica} requests on a copy ({split}, {most}), {sized.first_token_s:.2f} s + "
        f"{output:g} x {sized.step_s * 1e3:.1f} ms = {request:.1f} s each: {each:.2f} a second; "
        f"{rate:g} / {each:.2f} = {rate / each:.2f}: {report.replicas} copies"
    )


def main() -> None:
    """Print each question with both answers."""
    for row in questions():
        usual, separate = fewest_gpus(row), fewest_gpus(row, disaggregated=True)
        print(", ".join(f"{name} {value}" for name, value in row.items() if not name.startswith("aiconf")))
        theirs = (row["aiconfigurator_gpus"] or "-", row["aiconfigurator_disaggregated_gpus"] or "-")
        ours = tuple(one.report.gpus if one is not None else "-" for one in (usual, separate))
        print(f"    GPUs {ours[0]}, AIConfigurator {theirs[0]}; disaggregated {ours[1]}, AIConfigurator {theirs[1]}")
        if usual is not None:
            print(f"    {by_hand(row, usual)}")


if __name__ == "__main__":
    main()

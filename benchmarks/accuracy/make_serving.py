"""Make serving.csv.gz from aiconfigurator's table of measured runs: `python -m benchmarks.accuracy.make_serving FILE`.

FILE is `silicon_sample.csv` of github.com/ai-dynamo/aiconfigurator (Apache License 2.0), at 095f58a of 2026-08-21 in
`aic-core/src/aiconfigurator_core/systems`: runs of SemiAnalysis InferenceX and of NVIDIA, one a row. Only the figures
are carried over, in columns of our own: one row per run, times in milliseconds, an empty cell where a run has no such
figure. Rows that differ in nothing but their name are one run. `batch` is of one replica of the attention, that is of
all tensor ranks; `tensor_parallel` is of the attention, and `attention_data_parallel` such groups share the experts.
"""

import csv
import gzip
import io
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

TABLE = Path(__file__).parent / "serving.csv.gz"

SOURCE_COLUMNS = {
    "engine": "backend",
    "engine_version": "backend_version",
    "model": "model_path",
    "gpu": "system",
    "precision": "precision",
    "matrix_type": "gemm_quant_mode",
    "expert_type": "moe_quant_mode",
    "mode": "mode",
    "input_tokens": "isl",
    "output_tokens": "osl",
    "batch": "batch_size",
    "tensor_parallel": "tp_size",
    "pipeline_parallel": "pp_size",
    "attention_data_parallel": "attention_dp_size",
    "expert_tensor_parallel": "moe_tp_size",
    "expert_parallel": "moe_ep_size",
    **{
        f"{stage}_{name}": f"{stage}_{source}"
        for stage in ("prefill", "decode")
        for name, source in (
            ("batch", "batch_size"),
            ("workers", "num_workers"),
            ("tensor_parallel", "tp_size"),
            ("attention_data_parallel", "attention_dp_size"),
            ("expert_parallel", "moe_ep_size"),
        )
    },
    "ttft_ms": "silicon_ttft_ms",
    "tpot_ms": "silicon_tpot_ms",
}
"""The source's column of each of ours."""


def convert(rows: Iterable[dict[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield the runs of the source in our columns; times have six digits."""
    seen = set()
    for row in rows:
        run = tuple(
            f"{float(row[source]):.6g}" if name.endswith("_ms") and row[source] else row[source]
            for name, source in SOURCE_COLUMNS.items()
        )
        if run not in seen:
            seen.add(run)
            yield run


def main() -> None:
    """Write the table."""
    with Path(sys.argv[1]).open(encoding="utf-8", newline="") as file:
        runs = sorted(convert(csv.DictReader(file)))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(SOURCE_COLUMNS)
    writer.writerows(runs)
    TABLE.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{len(runs)} runs in {TABLE.name}")


if __name__ == "__main__":
    main()

"""Where a workload that is asked about runs: the split and the copies that were given, else what follows from them."""

from dataclasses import dataclass

from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.memory import WHOLE, Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Placing:
    """One copy's split, and how many copies there are: replicas of a server, data-parallel ranks of a training."""

    split: Split
    copies: int

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.split.gpus * self.copies


ALONE = Placing(split=WHOLE, copies=1)


def place_serving(load: InferenceWorkload, gpus: Gpus, heads: int | None, ledger: Ledger) -> Placing:
    """Cut one copy over the most GPUs that divide the heads, unless the split is given; the rest are copies."""
    stages = ledger.take(load.pipeline_parallel, "inference.pipeline_parallel")
    tensor, count = load.tensor_parallel, gpus.count
    if count is None:
        count = stages * (ledger.take(None, "gpus.count") if tensor is None else tensor)
    if tensor is None:
        ways = [t for t in range(1, count // stages + 1) if count % (t * stages) == 0 and (heads or t) % t == 0]
        tensor = max(ways, default=1)
        ledger.note("inference.tensor_parallel", tensor, "one copy over as many GPUs as divide the heads")
    _check_split("inference", Split(tensor=tensor, pipeline=stages), count, heads)
    return Placing(split=Split(tensor=tensor, pipeline=stages), copies=count // (tensor * stages))


def place_training(job: TrainingWorkload, gpus: Gpus, heads: int | None, ledger: Ledger) -> Placing:
    """Take the given split, and as many data-parallel copies as are given or GPUs are left."""
    tensor = ledger.take(job.tensor_parallel, "training.tensor_parallel")
    stages = ledger.take(job.pipeline_parallel, "training.pipeline_parallel")
    copies = job.data_parallel
    if copies is None:
        count = ledger.take(gpus.count, "gpus.count") if gpus.count or tensor * stages == 1 else tensor * stages
        copies = max(1, count // (tensor * stages))
    _check_split("training", Split(tensor=tensor, pipeline=stages), gpus.count or tensor * stages * copies, heads)
    if gpus.count is not None and gpus.count != tensor * stages * copies:
        raise Impossible(
            "training.data_parallel", f"{tensor} x {stages} x {copies} are not the {gpus.count} GPUs given"
        )
    return Placing(split=Split(tensor=tensor, pipeline=stages), copies=copies)


def _check_split(use: str, split: Split, count: int, heads: int | None) -> None:
    if heads is not None and heads % split.tensor:
        raise Impossible(f"{use}.tensor_parallel", f"{split.tensor} does not divide {heads} heads")
    if count % split.gpus:
        said = f"{count} is no multiple of {split.tensor} x {split.pipeline}, the GPUs of one copy"
        raise Impossible("gpus.count", said)

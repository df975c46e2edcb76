"""The ten services that are sized beside AIConfigurator."""

import pytest

from benchmarks.accuracy.services import by_hand, fewest_gpus, questions

ROWS = [row for row in questions() if row["model"].startswith(("llama", "qwen3-32b"))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']} {row['gpu']}")
def test_a_service_takes_as_many_gpus_as_aiconfigurator_recommends(row: dict[str, str]) -> None:
    sized = fewest_gpus(row)
    assert sized is not None
    assert sized.report.gpus == int(row["aiconfigurator_gpus"])
    assert by_hand(row, sized).endswith(f": {sized.report.replicas} copies")


def test_there_are_ten_services() -> None:
    assert len(list(questions())) == 10

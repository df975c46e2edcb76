"""Speculative decoding as a stated factor."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.estimator.estimate import estimate_serving, serving_setup
from app.fit.estimator.serving import kv_cache_of, weights_range
from app.fit.estimator.serving_speed import ServingSpeed, serving_speed
from app.fit.estimator.workload import InferenceWorkload, Speculation
from app.fit.formulas.architecture import Architecture, LayerCache, count_parameters
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import KvCache, with_further_layers
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.formulas.quantization import ReleasedWeights, fp8_blocks
from app.fit.placement.option import explain
from app.fit.results import InferenceFigures
from tests.fit.formulas.test_hf_config import DEEPSEEK
from tests.fit.placement.factories import LLAMA_70B, expect_option, prepare_request, prepare_service, service
from tests.fit.test_expert_ranks import DEEPSEEK_V3, H200, LOAD

LOAD_70B = LOAD | {"dtype": "bf16", "tensor_parallel": 8}


def speed(shape: Architecture = LLAMA_70B, speculative: Speculation | None = None, **workload: Any) -> ServingSpeed:
    use = InferenceWorkload(**LOAD_70B | workload, speculative=speculative)
    setup = serving_setup(shape, use, H200, Assumptions())
    found = serving_speed(setup, weights_range(setup), kv_cache_of(setup))
    assert found is not None
    return found


def figures(shape: Architecture, speculative: Speculation | None, **workload: Any) -> InferenceFigures:
    use = InferenceWorkload(**LOAD_70B | workload, speculative=speculative)
    found = estimate_serving(shape, use, H200, Assumptions()).inference
    assert found is not None
    return found


@given(
    st.sampled_from([LLAMA_70B, DEEPSEEK_V3]), st.integers(1, 500), st.integers(1, 8), st.floats(0, 1), st.floats(0, 1),
    st.sampled_from([{}, {"draft_params": 10**9}, {"draft_weight_gib": 1.5}, {"mtp_layers": 1}]),
    st.sampled_from([1, 2]),
)  # fmt: skip
def test_more_accepted_tokens_are_faster_and_no_time_beats_its_bound(  # noqa: PLR0917  # one drawn value each
    shape: Architecture, sequences: int, drafted: int, few: float, more: float, draft: dict[str, Any], groups: int
) -> None:
    if groups > 1 and shape is LLAMA_70B:
        return
    less, most = sorted((few * drafted, more * drafted))
    slow, fast = (
        speed(
            shape,
            Speculation(accepted_tokens_per_step=accepted, draft_tokens=drafted, **draft),
            concurrency=sequences,
            data_parallel_attention=groups,
        )
        for accepted in (less, most)
    )
    assert fast.step_s.mid <= slow.step_s.mid * (1 + 1e-9)
    for found in (slow, fast):
        assert found.min_step_s <= found.step_s.low <= found.step_s.mid <= found.step_s.high
        assert found.max_tokens_per_s == sequences / found.min_step_s
        assert "speculative" in found.departures


def test_proposing_in_vain_takes_time_and_a_larger_draft_more() -> None:
    plain = speed(concurrency=64)
    nothing, small, large = (
        speed(
            speculative=Speculation(accepted_tokens_per_step=0.0, draft_tokens=4, draft_params=params), concurrency=64
        )
        for params in (None, 10**9, 8 * 10**9)
    )
    assert plain.step_s.mid < nothing.step_s.mid < small.step_s.mid < large.step_s.mid


def test_a_few_sequences_gain_more_than_many_as_these_compute_what_is_verified() -> None:
    spec = Speculation(accepted_tokens_per_step=2.0, draft_tokens=3, draft_weight_gib=1.0)
    gains = [
        speed(concurrency=sequences).step_s.mid / speed(speculative=spec, concurrency=sequences).step_s.mid
        for sequences in (1, 64, 1024)
    ]
    assert 3 > gains[0] > gains[1] > gains[2]


def test_the_weights_of_the_draft_are_counted() -> None:
    plain = figures(LLAMA_70B, None)
    drafted = figures(LLAMA_70B, Speculation(accepted_tokens_per_step=2.0, draft_weight_gib=16.0))
    assert plain.weights is not None
    assert drafted.weights is not None
    assert plain.memory_per_gpu is not None
    assert drafted.memory_per_gpu is not None
    assert float(drafted.weights.value or 0) - float(plain.weights.value or 0) == pytest.approx(16.0)
    assert float(drafted.memory_per_gpu.weights.value or 0) - float(
        plain.memory_per_gpu.weights.value or 0
    ) == pytest.approx(2.0)


def test_multi_token_prediction_of_deepseek_takes_as_much_as_its_checkpoint_has_of_it() -> None:
    stored = ReleasedWeights(dtype="fp8", source="preset", quantization=fp8_blocks(128), why="as released")
    shape = replace(DEEPSEEK_V3, released=stored)
    sizes = []
    for spec in (None, Speculation(accepted_tokens_per_step=0.8, mtp_layers=1)):
        found = figures(shape, spec, dtype=None)
        assert found.weights is not None
        assert found.kv_cache is not None
        assert found.kv_cache.per_token is not None
        sizes.append(
            (float(found.weights.value or found.weights.mid or 0) * 2**30 / 1e9, found.kv_cache.per_token.value)
        )
    (main, cache), (whole, cache_with_it) = sizes
    # model.safetensors.index.json of deepseek-ai/DeepSeek-V3: 688.6 GB.
    assert main == pytest.approx(673, abs=1)
    assert whole == pytest.approx(688.6, rel=0.002)
    assert cache_with_it == pytest.approx(float(cache or 0) * 62 / 61)


@pytest.mark.parametrize(
    ("embeddings", "rows"), [(True, 2 * 129_280 * 7168), (False, 0)], ids=["of its own", "of the model"]
)
def test_a_model_with_multi_token_prediction_drafts_by_it_unless_another_draft_is_given(
    embeddings: bool, rows: int
) -> None:
    shape = replace(DEEPSEEK_V3, mtp_layers=1, mtp_embeddings=embeddings)
    assumptions = Assumptions()
    use = InferenceWorkload(**LOAD | {"dtype": "bf16"}, speculative=Speculation(accepted_tokens_per_step=0.8))
    own = weights_range(serving_setup(shape, use, H200, assumptions))
    looked_up = weights_range(
        serving_setup(
            shape,
            replace(use, speculative=Speculation(accepted_tokens_per_step=0.8, draft_weight_gib=0.0)),
            H200,
            Assumptions(),
        )
    )
    assert own is not None
    assert looked_up is not None
    count = count_parameters(shape)
    assert own.mid - looked_up.mid == pytest.approx(2 * (count.largest_layer + 2 * 7168**2 + rows))
    assert looked_up.mid == 2 * count.total
    assert ("inference.speculative.mtp_layers", 1) in {(one.field, one.value) for one in assumptions.recorded}


def test_a_draft_that_nothing_gives_is_assumed_to_have_no_weights() -> None:
    field = "inference.speculative.draft_weight_gib"
    for stated, assumed in (({}, {field: 0.0}), ({"draft_weight_gib": 0.0}, {}), ({"draft_params": 10**9}, {})):
        assumptions = Assumptions()
        use = Speculation(accepted_tokens_per_step=2.5, draft_tokens=4, **stated)
        serving_setup(LLAMA_70B, InferenceWorkload(**LOAD_70B, speculative=use), H200, assumptions)
        assert {note.field: note.value for note in assumptions.recorded if "draft" in note.field} == assumed


@pytest.mark.parametrize(
    ("layers", "draft", "said"),
    [
        (None, {}, "assuming a draft without weights"),
        (1, {}, "assuming multi-token prediction as the draft"),
        (1, {"draft_weight_gib": 0.0}, ""),
    ],
)
def test_the_explanation_of_an_option_names_the_draft_that_is_assumed(
    layers: int | None, draft: dict[str, Any], said: str
) -> None:
    use = Speculation(accepted_tokens_per_step=0.8, **draft)
    shape = replace(LLAMA_70B, mtp_layers=layers)
    text = explain(expect_option(prepare_request(InferenceWorkload(**LOAD, speculative=use), shape)))
    assert [part for part in text.split("; ") if part.startswith("assuming")] == ([said] if said else [])


def test_what_is_assumed_of_layers_that_draft_is_the_same_with_and_without_drafting() -> None:
    """The layers of the file are not said to be 0 beside the 1 that drafts."""
    for use in (None, Speculation(accepted_tokens_per_step=0.8)):
        assumptions = Assumptions()
        shape = read_config(DEEPSEEK | {"num_nextn_predict_layers": 1}, assumptions)
        serving_setup(shape, InferenceWorkload(**LOAD | {"dtype": "bf16"}, speculative=use), H200, assumptions)
        named = {note.field: note.value for note in assumptions.recorded}
        assert named["config.num_nextn_predict_layers"] == 1
        assert named.get("inference.speculative.mtp_layers", 1) == 1
        assert ("inference.speculative.mtp_layers" in named) == bool(use)


def test_layers_of_multi_token_prediction_keep_the_cache_of_a_whole_context() -> None:
    windowed, whole = LayerCache(heads=8, values=256, window=512), LayerCache(heads=8, values=256)
    cache = with_further_layers(KvCache(kinds=((windowed, 33), (whole, 12))), 1)
    assert cache.kinds == ((windowed, 33), (whole, 13))
    only_windows = KvCache(kinds=((windowed, 33),))
    assert with_further_layers(only_windows, 1) == only_windows


def test_a_service_counts_the_time_per_token() -> None:
    level = service(users=400, tpot_ms=20.0, ttft_ms=2000.0)
    spec = Speculation(accepted_tokens_per_step=2.0, draft_tokens=3, draft_weight_gib=1.0)
    plain, drafted = (
        expect_option(prepare_service(level, use=InferenceWorkload(speculative=one))) for one in (None, spec)
    )
    assert drafted.attempt.nodes < plain.attempt.nodes
    assert drafted.speed is not None
    assert drafted.speed.step_s is not None
    assert drafted.speed.step_s.mid * 1e3 <= 20.0


@pytest.mark.parametrize(
    "given",
    [
        {"accepted_tokens_per_step": 3.0, "draft_tokens": 2},
        {"accepted_tokens_per_step": 1.0, "draft_params": 10**9, "mtp_layers": 1},
    ],
)
def test_a_speculation_that_contradicts_itself_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidWorkload) as error:
        speed(speculative=Speculation(**given))
    assert error.value.field == "inference.speculative"

"""What must hold of every workload: more GPUs never need more of each, a longer context never less."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.fit.formulas.architecture import LayerCache
from app.fit.formulas.memory import (
    KvCache,
    Parallelism,
    ServedModel,
    ServingLoad,
    inference_need,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    largest_gpu_share,
    max_sequences,
    step_seconds,
    tokens_in_budget,
)
from app.fit.formulas.optimizer import RECIPES, Recipe, model_states
from app.fit.formulas.training_memory import (
    ActivationPolicy,
    ForwardPass,
    LayerWidths,
    MicroBatch,
    TrainedModel,
    activation_bytes,
    training_need,
)

counts = st.integers(1, 128)
params = st.integers(1, 10**13)
stages = st.integers(0, 3)
recipes = st.sampled_from(sorted(RECIPES)).map(RECIPES.__getitem__)
parallelisms = st.builds(Parallelism, tensor=st.integers(1, 72), pipeline=st.integers(1, 32))
kept = st.builds(
    lambda heads, values, latent: LayerCache(heads, values, latent=latent),
    st.integers(1, 128),
    st.integers(1, 1024),
    st.booleans(),
)
caches = st.builds(
    KvCache,
    kinds=st.builds(
        lambda cache, full, window, windowed: ((cache, full), (cache._replace(window=window), windowed)),
        kept,
        st.integers(1, 130),
        st.integers(1, 8192),
        st.integers(0, 130),
    ),
    value_bytes=st.sampled_from([0.5, 1.0, 2.0, 4.0]),
    block_tokens=st.sampled_from([1, 16, 256]),
)
models = st.builds(
    ServedModel,
    weights_bytes=st.floats(1, 1e13),
    cache=caches,
    layers=st.integers(1, 130),
    embeddings=st.floats(0, 1),
    step_bytes_per_token=st.floats(0, 1e6),
)
loads = st.builds(
    ServingLoad,
    context_tokens=st.integers(1, 10**6),
    sequences=st.integers(0, 1000),
    batched_tokens=st.integers(1, 10**5),
)
layers = st.builds(
    LayerWidths,
    hidden=st.integers(64, 20_000),
    heads=st.integers(1, 128),
    kv_width=st.integers(64, 20_000),
    intermediate=st.integers(64, 80_000),
)
batches = st.builds(MicroBatch, sequence_tokens=st.integers(1, 10**5), micro_batch=st.integers(1, 64))
policies = st.builds(
    ActivationPolicy,
    formula=st.sampled_from(["korthikanti", "modern", "zero"]),
    recompute=st.sampled_from(["none", "selective", "full"]),
    sequence_parallel=st.booleans(),
    micro_batches=st.none() | st.integers(1, 64),
)
trained_models = st.builds(
    TrainedModel,
    params=params.map(float),
    recipe=recipes,
    stage=stages,
    layers=st.integers(1, 130),
    embeddings=st.floats(0, 1),
    largest_layer=st.floats(0, 1e10),
    forward_pass=st.none()
    | st.builds(
        ForwardPass, layer=layers, layers=st.integers(1, 130), batch=batches, policy=policies, vocab=st.none() | counts
    ),
)


def wider(parallelism: Parallelism) -> list[Parallelism]:
    """The splits with one GPU more in one direction."""
    return [
        replace(parallelism, tensor=parallelism.tensor + 1),
        replace(parallelism, pipeline=parallelism.pipeline + 1),
    ]


def no_more(some: float, than: float) -> bool:
    """Compare up to what the last digit of a double can say."""
    return some <= than * (1 + 1e-12)


@given(params, recipes, stages, counts)
def test_more_shards_and_higher_stages_never_hold_more_states(
    some: int, recipe: Recipe, stage: int, shards: int
) -> None:
    held = model_states(some, recipe, stage=stage, shards=shards).total
    assert model_states(some, recipe, stage=stage, shards=shards + 1).total <= held
    assert model_states(some, recipe, stage=min(3, stage + 1), shards=shards).total <= held
    assert model_states(some, recipe, stage=stage, shards=shards, offload="optimizer").total <= held


@given(params, recipes, counts)
def test_all_shards_of_stage_3_together_hold_the_states_once(some: int, recipe: Recipe, shards: int) -> None:
    whole = some * (recipe.weights + recipe.gradients + recipe.optimizer)
    assert abs(model_states(some, recipe, stage=3, shards=shards).total * shards - whole) <= whole * 1e-9


@given(parallelisms, st.integers(1, 130), st.floats(0, 1))
def test_a_wider_split_never_holds_a_larger_share(
    parallelism: Parallelism, layer_count: int, embeddings: float
) -> None:
    share = largest_gpu_share(parallelism, layers=layer_count, embeddings=embeddings)
    assert 1 / parallelism.gpus <= share * (1 + 1e-12)
    for more in wider(parallelism):
        assert no_more(largest_gpu_share(more, layers=layer_count, embeddings=embeddings), share)


@given(models, loads, parallelisms)
def test_a_wider_split_never_needs_more_of_a_gpu_to_serve(
    model: ServedModel, load: ServingLoad, parallelism: Parallelism
) -> None:
    need = inference_need(model, load, parallelism)
    for more in wider(parallelism):
        other = inference_need(model, load, more)
        assert no_more(other.weights, need.weights)
        assert other.kv_cache <= need.kv_cache
        assert no_more(other.activations.mid, need.activations.mid)
        if parallelism.gpus > 1:
            assert no_more(other.total.high, need.total.high)


@given(models, loads, parallelisms)
def test_a_longer_context_and_more_sequences_never_need_less(
    model: ServedModel, load: ServingLoad, parallelism: Parallelism
) -> None:
    need = inference_need(model, load, parallelism).total.mid
    longer = replace(load, context_tokens=load.context_tokens + 1)
    assert need <= inference_need(model, longer, parallelism).total.mid
    assert need <= inference_need(model, replace(load, sequences=load.sequences + 1), parallelism).total.mid


@given(models, loads, parallelisms, st.floats(1e9, 1e12))
def test_the_most_sequences_fit_and_one_more_does_not(
    model: ServedModel, load: ServingLoad, parallelism: Parallelism, budget: float
) -> None:
    most = max_sequences(model, load, parallelism, budget)
    assert most is not None
    assert most.low <= most.mid <= most.high
    if most.mid > 0:
        assert no_more(
            inference_need(model, replace(load, sequences=int(most.mid)), parallelism).total.mid, budget * 1.000001
        )
    more = replace(load, sequences=int(most.mid) + 1)
    assert inference_need(model, more, parallelism).total.mid > budget * 0.999999


@given(caches, st.integers(1, 10**6))
def test_a_window_never_keeps_more_and_pages_never_less(cache: KvCache, tokens: int) -> None:
    size = kv_bytes_per_sequence(cache, tokens)
    without = replace(cache, kinds=tuple((layer._replace(window=None), count) for layer, count in cache.kinds))
    assert size <= kv_bytes_per_sequence(without, tokens)
    assert size >= kv_bytes_per_sequence(replace(cache, block_tokens=1), tokens)


@given(caches, st.floats(0, 1e13))
def test_the_tokens_of_a_budget_fit_into_it_and_a_page_more_does_not(cache: KvCache, budget: float) -> None:
    tokens, each = tokens_in_budget(cache, budget), kv_bytes_per_token(cache)
    assert tokens * each <= budget < (tokens + cache.block_tokens) * each


@given(caches, parallelisms)
def test_all_tensor_ranks_together_keep_at_least_the_whole_cache(cache: KvCache, parallelism: Parallelism) -> None:
    together = kv_bytes_per_token(cache, parallelism) * parallelism.gpus
    assert together >= kv_bytes_per_token(cache)


@given(trained_models, parallelisms, st.integers(2, 512))
def test_more_shards_and_a_wider_split_never_need_more_of_a_gpu_to_train(
    model: TrainedModel, parallelism: Parallelism, shards: int
) -> None:
    need = training_need(model, parallelism, shards).total
    assert need.low <= need.mid <= need.high
    assert no_more(training_need(model, parallelism, shards + 1).total.high, need.high)
    for more in wider(parallelism):
        other = training_need(model, more, shards).total
        assert no_more(other.mid, need.mid)
        assert no_more(other.high, need.high)


@given(layers, st.integers(2, 130), batches, policies)
def test_recomputation_never_stores_more(
    layer: LayerWidths, layer_count: int, batch: MicroBatch, policy: ActivationPolicy
) -> None:
    none, selective, full = (
        activation_bytes(layer, layer_count, batch, replace(policy, recompute=how, micro_batches=None)).mid
        for how in ("none", "selective", "full")
    )
    assert selective <= none
    assert full <= none * (1 + 1e-12)


@given(st.floats(1, 1e13), st.floats(0, 1e12), st.floats(0, 1e16), st.floats(1e9, 1e13), st.floats(1e12, 1e16))
def test_nothing_is_faster_than_its_bound(
    weights: float, kept: float, flops: float, bandwidth: float, peak: float
) -> None:
    least = step_seconds(weights, kept, flops, bandwidth=bandwidth, peak_flops=peak)
    assert least >= weights / bandwidth
    assert least >= flops / peak
    assert least >= step_seconds(weights, kept, flops, bandwidth=bandwidth * 2, peak_flops=peak)
    assert least >= step_seconds(weights, kept, flops, bandwidth=bandwidth)


def test_an_overhead_is_never_free() -> None:
    need = inference_need(
        ServedModel(weights_bytes=0), ServingLoad(context_tokens=0, sequences=0, batched_tokens=1), Parallelism()
    )
    assert 0 <= need.total.low < need.total.mid < need.total.high

"""What must hold of the language models in the seeds: their figures give their parameters, to the last one."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from app.catalog.names import model_keys
from app.catalog.presets import Preset
from app.catalog.queries.lookups import ModelsByKey, get_model_row
from app.catalog.readings import Reading
from app.errors import NotFound
from app.fit.estimator.model import resolve_model
from app.fit.estimator.serving import ServingSetup, kv_cache_of
from app.fit.estimator.weights import Weights, count_weights
from app.fit.estimator.workload import Gpus, InferenceWorkload
from app.fit.formulas.architecture import Architecture, count_parameters
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import kv_bytes_per_token
from app.fit.formulas.quantities import Assumptions
from app.schemas.fit_request import EstimateIn
from app.services.fit import resolve_architecture, to_architecture
from tests.seeds.parameters import (
    fp8_scales,
    latent_matrices,
    parameters,
    prediction_module,
    rotary_frequencies,
    vision_tower,
)
from tests.seeds.released_sizes import BYTES, CHECKPOINTS

ByFile = dict[str, Reading]
Presets = dict[str, Preset]


@pytest.fixture(scope="module")
def presets(by_file: ByFile) -> Presets:
    return {model.preset.id: model.preset for model in by_file["models"].models}


@pytest.fixture(scope="module")
def by_id(presets: Presets) -> ModelsByKey:
    return {
        key: {"id": id_}
        for id_, preset in presets.items()
        for key in model_keys(name for names in preset.names.values() for name in names)
    }


def test_the_families_that_are_asked_for_are_there(presets: Presets) -> None:
    asked = (
        "llama-2- llama-3- llama-3.1- llama-3.2- llama-3.3- mistral- mixtral- qwen2.5- qwen3- deepseek-v3 deepseek-r1 "
        "gemma-2- gemma-3- phi-3 phi-4 gpt-3- falcon- bloom-"
    )
    assert [family for family in asked.split() if not any(id_.startswith(family) for id_ in presets)] == []
    assert len(presets) >= 30
    assert {preset.attention for preset in presets.values()} == {"mha", "gqa", "mqa", "mla"}


@pytest.fixture(scope="module")
def equal_layers(presets: Presets) -> Presets:
    return {id_: preset for id_, preset in presets.items() if not preset.config}


def test_each_has_the_parameters_that_its_figures_give(equal_layers: Presets) -> None:
    assert {id_: p.params for id_, p in equal_layers.items()} == {id_: parameters(p) for id_, p in equal_layers.items()}


def test_each_uses_the_parameters_of_the_experts_that_a_token_is_routed_to(equal_layers: Presets) -> None:
    active = {id_: parameters(p, experts=p.experts_per_token) for id_, p in equal_layers.items()}
    assert {id_: p.active_params for id_, p in equal_layers.items()} == active


def test_a_configuration_gives_the_parameters_and_the_outline_that_stand_beside_it(presets: Presets) -> None:
    configured = {id_: preset for id_, preset in presets.items() if preset.config}
    assert len(configured) >= 30
    for id_, preset in configured.items():
        shape = to_architecture(preset.model_dump())
        if shape.kind == "diffusion":  # which has no vocabulary of its own, and is counted by its parts
            shape, total, active = replace(shape, vocab=0), shape.params, shape.active_params
        else:
            counted = count_parameters(shape)
            total, active = counted.total, counted.active
        assert (id_, total, active) == (id_, preset.params, preset.active_params)
        outline = ("layers", "hidden", "vocab", "heads", "kv_heads", "head_dim", "tied_embeddings", "attention")
        assert {name: getattr(shape, name) for name in outline} == {name: getattr(preset, name) for name in outline}


def test_a_configuration_gives_the_weights_and_the_cache_of_its_preset(presets: Presets) -> None:
    """What GET /models answers as `config` may be sent back in place of the name."""
    configured = {id_: preset for id_, preset in presets.items() if preset.config}
    of_name = {id_: figures(to_architecture(preset.model_dump())) for id_, preset in configured.items()}
    of_config = {id_: figures(read_config(preset.config or {}, Assumptions())) for id_, preset in configured.items()}
    assert {id_: (of_name[id_], of_config[id_]) for id_ in configured if of_name[id_] != of_config[id_]} == {}


def figures(shape: Architecture) -> tuple[int | None, float | None, float | None]:
    """Parameters, bytes of the weights, and of the cache of a token, where these are counted."""
    model, workload = resolve_model(shape, Assumptions()), InferenceWorkload()
    weights = count_weights(model, workload, Assumptions())
    setup = ServingSetup(model=model, workload=workload, gpus=Gpus(), assumptions=Assumptions())
    cache = kv_cache_of(setup)
    return (
        model.count.total if model.count is not None else shape.params,
        weights.bytes.mid if weights is not None else None,
        kv_bytes_per_token(cache) if cache is not None else None,
    )


WITHOUT_VISION = ("mistral-large-3", "mistral-small-4", "minimax-m3", "step-3.7-flash", "llama-4-scout", "gemma-3-27b")
"""Presets whose checkpoint has a vision encoder that they do not count."""


@pytest.mark.parametrize("id_", WITHOUT_VISION)
def test_a_preset_that_leaves_a_vision_encoder_out_says_so(presets: Presets, id_: str) -> None:
    spec, assumptions = EstimateIn.model_validate({"model": id_, "inference": {}}), Assumptions()
    resolve_architecture(spec, lambda name: presets[name].model_dump(), assumptions)
    (said,) = (note for note in assumptions.recorded if note.field == "model")
    assert said.value == presets[id_].params
    assert "only the language model is counted" in said.why or "the vision tower" in said.why


def test_the_most_used_models_of_2026_are_there(presets: Presets) -> None:
    asked = (
        "qwen3-vl-2b qwen3-vl-8b qwen3.6-35b-a3b qwen3.6-27b gemma-4-26b-a4b gemma-4-31b qwen3.5-122b-a10b "
        "qwen3.5-397b-a17b qwen3-coder-480b-a35b deepseek-v3.2 deepseek-v4-flash deepseek-v4-pro glm-5.2 kimi-k2.5 "
        "kimi-k3 minimax-m2.7 minimax-m3 nemotron-3-nano-30b-a3b nemotron-3-super-120b-a12b llama-4-scout gemma-4-e2b "
        "gemma-4-e4b qwen3.5-9b qwen2.5-vl-7b qwen3-coder-next glm-4.7 mistral-small-4 mistral-large-3 bge-m3 "
        "whisper-large-v3 qwen3-embedding-8b flux.1-dev qwen-image wan2.2-t2v-a14b"
    )
    assert [id_ for id_ in asked.split() if id_ not in presets] == []


def test_models_that_transformers_has_are_counted_like_it(presets: Presets) -> None:
    """On the meta device, by transformers 5.23, and the biases of GLM's routers, which it keeps as buffers."""
    counted = {
        "gemma-4-e2b": 4_628_569_344,
        "gemma-4-e4b": 7_463_013_376,
        "qwen3.5-9b": 8_953_803_264,
        "qwen2.5-vl-7b": 8_292_166_656,
        "qwen3-coder-next": 79_674_391_296,
        "glm-4.7": 352_797_814_784 + 89 * 160,
        "mistral-small-4": 118_972_826_624,
        "bge-m3": 567_754_752,
        "whisper-large-v3": 1_543_490_560,
        "qwen3-embedding-8b": 7_567_295_488,
    }
    assert {id_: presets[id_].params for id_ in counted} == counted


@pytest.mark.parametrize(
    ("written", "id_"),
    [
        ("Llama 3.1 70B", "llama-3.1-70b"),
        ("llama-3.1-70b-instruct", "llama-3.1-70b"),
        ("Llama 3.1 70B Instruct", "llama-3.1-70b"),
        ("llama3.1:70b", "llama-3.1-70b"),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("META-LLAMA/Meta-Llama-3.1-70B-Instruct", "llama-3.1-70b"),
        ("Gemma 4 E4B", "gemma-4-e4b"),
        ("google/gemma-4-e4b-it", "gemma-4-e4b"),
        ("Qwen/Qwen3-Coder-Next", "qwen3-coder-next"),
    ],
)
def test_a_model_is_found_as_people_write_its_name(by_id: ModelsByKey, written: str, id_: str) -> None:
    assert get_model_row(by_id, written)["id"] == id_


@pytest.mark.parametrize(
    ("written", "suggested"),
    [
        ("llama-3.1-70b-instruct-awq", ("llama-3.1-70b",)),
        ("TheBloke/Llama-2-13B-GPTQ", ("llama-2-13b",)),
        ("Qwen3-30B-A3B-Instruct-2507-FP8", ("qwen3-30b-a3b",)),
        ("bert-base-uncased", ()),
    ],
)
def test_a_name_that_is_not_known_has_the_model_that_it_is_a_variant_of(
    by_id: ModelsByKey, written: str, suggested: tuple[str, ...]
) -> None:
    with pytest.raises(NotFound) as unknown:
        get_model_row(by_id, written)
    assert unknown.value.suggestions == suggested


def embedding(p: Preset) -> int:
    return p.vocab * p.hidden


EXPLAINED: dict[str, Callable[[Preset], int]] = {
    "llama-2-7b": rotary_frequencies,
    "llama-2-13b": rotary_frequencies,
    "llama-2-70b": rotary_frequencies,
    "qwen3-0.6b": embedding,
    "qwen3-1.7b": embedding,
    "falcon-7b": embedding,
    "falcon-40b": embedding,
    "falcon-180b": embedding,
    "gemma-3-4b": vision_tower,
    "gemma-3-12b": vision_tower,
    "gemma-3-27b": vision_tower,
    "deepseek-r1": prediction_module,
    "deepseek-v3": lambda p: prediction_module(p) + fp8_scales(p),
}
"""What a published number has besides the parameters of the language model; all others have nothing."""


def test_what_is_published_besides_is_explained_to_the_last_parameter(presets: Presets) -> None:
    published = {id_: p.published_params - p.params for id_, p in presets.items() if p.published_params is not None}
    explained = {id_: EXPLAINED[id_](presets[id_]) if id_ in EXPLAINED else 0 for id_ in published}
    assert published == explained
    assert EXPLAINED.keys() <= published.keys()


ROUNDED = [
    ("gpt-3-175b", "params", 1746, 10**8),
    ("mixtral-8x7b", "params", 467, 10**8),
    ("mixtral-8x7b", "active_params", 129, 10**8),
    ("mixtral-8x22b", "params", 141, 10**9),
    ("mixtral-8x22b", "active_params", 39, 10**9),
    ("deepseek-v2", "params", 236, 10**9),
    ("deepseek-v2", "active_params", 21, 10**9),
    ("deepseek-v3", "params", 671, 10**9),
    ("dbrx", "params", 132, 10**9),
    ("dbrx", "active_params", 36, 10**9),
    ("phi-3.5-moe", "params", 419, 10**8),
    ("phi-3.5-moe", "active_params", 66, 10**8),
    ("command-r-plus", "params", 104, 10**9),
    ("mistral-large-123b", "params", 123, 10**9),
    ("mistral-large-3", "params", 673, 10**9),  # 675 with a vision encoder of 2.5
    ("wan2.2-t2v-a14b", "active_params", 14, 10**9),
    ("flux.1-dev", "active_params", 12, 10**9),
    ("qwen-image", "active_params", 20, 10**9),
]
"""Numbers that papers and announcements give in millions and billions."""


@pytest.mark.parametrize(("id_", "field", "said", "unit"), ROUNDED)
def test_a_rounded_number_of_a_paper_is_reached(presets: Presets, id_: str, field: str, said: int, unit: int) -> None:
    assert round(getattr(presets[id_], field) / unit) == said


def test_every_name_is_one_models(presets: Presets) -> None:
    called = [{name for names in preset.names.values() for name in names} for preset in presets.values()]
    keys = Counter(key for names in called for key in model_keys(names))
    assert [key for key, count in keys.items() if count > 1] == []


DIFFUSION = ("flux.1-dev", "qwen-image", "wan2.2-t2v-a14b", "wan2.1-t2v-14b")


def test_only_unconfirmed_values_are_left_blank(presets: Presets) -> None:
    """A checkpoint's repository, its data type, the longest context and the licence are known of nearly all."""
    unknown = {
        (id_, field)
        for id_, preset in presets.items()
        for field in ("hf_repo", "license", "dtype", "max_context_tokens")
        if getattr(preset, field) is None
    }
    assert unknown == {
        *(("gpt-3-175b", field) for field in ("hf_repo", "license", "dtype")),
        ("olmo-2-7b", "dtype"),
        ("olmo-2-13b", "dtype"),
        *((id_, "license") for id_ in presets if id_.startswith(("nemotron-3-", "minimax-"))),
        *((id_, "license") for id_ in ("kimi-k3", "step-3.7-flash")),
        *((id_, "license") for id_ in ("qwen3.5-9b", "qwen2.5-vl-7b", "glm-4.7", "mistral-small-4")),
        *((id_, "license") for id_ in ("bge-m3", "whisper-large-v3")),
        *((id_, "license") for id_ in DIFFUSION),
        *((id_, "max_context_tokens") for id_ in DIFFUSION),
    }


@pytest.mark.parametrize(
    ("id_", "layers", "window"),
    [
        ("mistral-7b-v0.1", 32, 4096),
        ("gemma-2-27b", 23, 4096),
        ("gemma-3-1b", 22, 512),
        ("gemma-3-27b", 52, 1024),
        ("gpt-oss-120b", 18, 128),
    ],
)
def test_the_layers_with_a_window_follow_the_models_pattern(
    presets: Presets, id_: str, layers: int, window: int
) -> None:
    """All of Mistral's first, every other one of Gemma 2 and gpt-oss, five of six of Gemma 3."""
    assert (presets[id_].sliding_layers, presets[id_].sliding_window) == (layers, window)


def sized(preset: Preset) -> Weights:
    """The weights of a model of which nothing but its name is said."""
    model = resolve_model(to_architecture(preset.model_dump()), Assumptions())
    weights = count_weights(model, InferenceWorkload(), Assumptions())
    assert weights is not None
    return weights


def prediction_module_bytes(p: Preset) -> int:
    """Both embeddings and the matrix that joins two widths in 16 bits, a layer in FP8 with its scales, norms."""
    scales = fp8_scales(p) - fp8_scales(p.model_copy(update={"layers": p.layers - 1, "moe_layers": p.moe_layers - 1}))
    in_16_bits = 2 * p.hidden * (p.vocab + p.hidden) + p.experts * (p.hidden + 1)
    norms = prediction_module(p) - in_16_bits - in_fp8(p)
    return in_fp8(p) + 2 * (in_16_bits + norms) + 4 * scales


def in_fp8(p: Preset) -> int:
    """The matrices of one layer with experts."""
    experts = (p.experts + p.shared_experts) * 3 * p.hidden * (p.moe_intermediate or 0)
    return experts + sum(rows * columns for rows, columns in latent_matrices(p))


def test_a_preset_takes_what_its_checkpoint_does_in_the_type_it_is_released_in(presets: Presets) -> None:
    """Within a percent of the published bytes, of which the multi-token prediction module is not served."""
    beside = {"deepseek-v3": prediction_module_bytes, "deepseek-r1": prediction_module_bytes}
    off = {}
    for id_, (released, _) in CHECKPOINTS.items():
        ours = sized(presets[id_]).bytes.mid + beside.get(id_, lambda _: 0)(presets[id_])
        off[id_] = abs(ours / released - 1)
    assert {id_: share for id_, share in off.items() if share > 0.01} == {}
    published_to_the_byte = ("gpt-oss-20b", "gpt-oss-120b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b")
    assert [off[id_] for id_ in published_to_the_byte] == [0] * len(published_to_the_byte)


def test_a_preset_of_one_type_takes_its_bytes_for_each_published_parameter(presets: Presets) -> None:
    """Without what the checkpoint holds besides the language model, which is explained to the last parameter."""
    plain = {id_: p for id_, p in presets.items() if p.dtype in BYTES and p.published_params is not None}
    released = {
        id_: (p.published_params - (EXPLAINED[id_](p) if id_ in EXPLAINED else 0)) * BYTES[p.dtype]  # type: ignore[operator, index]
        for id_, p in plain.items()
    }
    assert {id_: sized(p).bytes.mid for id_, p in plain.items()} == released
    assert len(plain) >= 40


def test_each_preset_is_sized_in_its_own_type_and_the_answer_says_who_named_it(presets: Presets) -> None:
    kinds = {id_: (sized(p).type.dtype, sized(p).type.source) for id_, p in presets.items()}
    assert kinds == {id_: (p.dtype or "bf16", "preset" if p.dtype else "default") for id_, p in presets.items()}

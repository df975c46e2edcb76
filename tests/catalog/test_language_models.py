"""Language models that are kept: found by any of their names, changed by a new reading, refused where names clash."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from app.catalog.column_types import table_of
from app.catalog.models import LanguageModel
from app.catalog.presets import Preset
from app.catalog.queries.lookups import get_model, load_models
from app.catalog.queries.provenance import ModelSearch, find_models
from app.catalog.queries.snapshot import load_catalog
from app.catalog.readings import ModelRow
from app.db.engines import read_session as reads
from app.errors import BadData, NotFound
from app.ingest.run import IngestOutcome, ingest
from tests.factories import NOW, reading


def model(id_: str = "acme-3.1-7b", line: int = 2, **more: Any) -> ModelRow:
    ordinary: dict[str, Any] = {
        "name": id_, "params": 1000, "active_params": 1000, "layers": 4, "hidden": 64, "vocab": 100,
        "attention": "gqa", "heads": 8, "kv_heads": 2, "head_dim": 8, "intermediate": 128, "source_id": "page",
    }  # fmt: skip
    return ModelRow(preset=Preset(id=id_, **ordinary | more), source="cards", file="models.csv", line=line)


def take(engine: Engine, *models: ModelRow) -> IngestOutcome:
    return ingest(engine, reading(models=models), now=NOW)


def got(engine: Engine, name: str) -> Preset:
    with reads(engine) as session:
        return get_model(load_models(session), name)


def found(engine: Engine, q: str | None = None) -> list[str]:
    with reads(engine) as session:
        return [item["id"] for item in find_models(load_catalog(session, NOW.date()), ModelSearch(q=q)).items]


def test_the_table_has_a_column_for_every_field() -> None:
    assert list(table_of(LanguageModel).columns.keys()) == list(Preset.model_fields)


@pytest.mark.first_database
def test_a_model_comes_back_as_it_was_read(engine: Engine) -> None:
    large = model(
        params=10**12, active_params=10**10, published_params=10**12 + 1, params_note="one more", aliases=("a", "b"),
        moe_layers=4, experts=8, experts_per_token=2, moe_intermediate=32, intermediate=None, tied_embeddings=True,
        qk_norm="per_head", dtype="fp8",
    )  # fmt: skip
    take(engine, large)
    assert got(engine, "acme-3.1-7b") == large.preset


NAMED: dict[str, Any] = {
    "name": "Acme 3.1 7B",
    "hf_repo": "acme/Acme-3.1-7B-hf",
    "aliases": ("Acme-Labs/Acme-3.1-7B-Chat", "acme"),
}


@pytest.mark.first_database
@pytest.mark.parametrize(
    "name",
    [
        "acme-3.1-7b", "ACME-3.1-7B", "Acme 3.1 7B", "acme3.1:7b", "acme_3.1_7b", "acme/Acme-3.1-7B-hf",
        "ACME/acme-3.1-7b-HF", "acme-3.1-7b-hf", "acme-labs/acme-3.1-7b-chat", "Acme-3.1-7B-Chat", "Acme",
    ],
)  # fmt: skip
def test_a_model_is_found_by_any_of_its_names_in_any_case(engine: Engine, name: str) -> None:
    take(engine, model(**NAMED))
    assert got(engine, name).id == "acme-3.1-7b"


@pytest.mark.first_database
@pytest.mark.parametrize("name", ["acme-3-17b", "else/Acme-3.1-7B-hf", "acme-3.1-8b", "7b"])
def test_another_name_is_refused_with_the_nearest(engine: Engine, name: str) -> None:
    take(engine, model(**NAMED), model("zeta-1b"))
    with pytest.raises(NotFound) as caught:
        got(engine, name)
    assert "zeta-1b" not in caught.value.suggestions
    assert set(caught.value.suggestions) <= {"acme-3.1-7b"}


@pytest.mark.first_database
def test_another_generation_is_no_typo(engine: Engine) -> None:
    take(engine, model(**NAMED | {"aliases": ("acme-3",)}))
    with pytest.raises(NotFound) as caught:
        got(engine, "acme-9")
    assert caught.value.suggestions == ()
    with pytest.raises(NotFound) as caught:
        got(engine, "acmee-3")
    assert caught.value.suggestions == ("acme-3.1-7b",)


@pytest.mark.first_database
def test_a_near_name_is_told_once(engine: Engine) -> None:
    take(engine, model(**NAMED))
    with pytest.raises(NotFound, match=r"There is no model named 'acme-3.1-70b'. Did you mean acme-3.1-7b\?$"):
        got(engine, "acme-3.1-70b")


def test_every_word_of_a_search_must_be_there(engine: Engine) -> None:
    take(engine, model(**NAMED), model("zeta-1b", name="Zeta 100%"))
    assert found(engine) == ["acme-3.1-7b", "zeta-1b"]
    assert found(engine, "ACME chat") == ["acme-3.1-7b"]
    assert found(engine, "acme zeta") == []
    assert found(engine, "%") == ["zeta-1b"]


@pytest.mark.first_database
def test_the_same_again_changes_nothing_and_another_figure_makes_a_revision(engine: Engine) -> None:
    first = take(engine, model())
    again, other = take(engine, model()), take(engine, model(kv_heads=4))
    assert (again.new_revision, other.new_revision) == (False, True)
    assert other.summary.changes["model"].changed == 1
    assert other.revision["digest"] != first.revision["digest"]
    assert other.revision["counts"]["model"] == 1


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("column", "clash"),
    [
        ("name", "Acme 3.1 7B"),
        ("hf_repo", "zeta/Acme-3.1-7B-hf"),
        ("aliases", ("fine", "Acme")),
        ("aliases", ("acme_3.1_7b",)),
    ],
)
def test_a_name_that_means_another_model_is_refused_and_nothing_is_kept(
    engine: Engine, column: str, clash: Any
) -> None:
    other = model("zeta-1b", 3, **{column: clash})
    with pytest.raises(BadData, match=rf"models.csv:3: column '{column}': .*: already means 'acme-3.1-7b'"):
        take(engine, model(**NAMED), other)
    assert found(engine) == []
    take(engine, model(**NAMED))
    with pytest.raises(BadData, match=rf"models.csv:3: column '{column}': .*: already means 'acme-3.1-7b'"):
        take(engine, other)
    assert found(engine) == ["acme-3.1-7b"]


@pytest.mark.first_database
def test_one_file_may_not_describe_a_model_twice(engine: Engine) -> None:
    with pytest.raises(BadData, match=r"models.csv:5: column 'id': 'acme-3.1-7b': already means 'acme-3.1-7b'"):
        take(engine, model(), model(line=5))


def test_a_model_that_is_read_again_may_hand_its_alias_on(engine: Engine) -> None:
    take(engine, model(**NAMED))
    freed = model(**NAMED | {"aliases": ()})
    take(engine, freed, model("zeta-1b", 3, aliases=("acme",)))
    assert got(engine, "acme").id == "zeta-1b"


def test_a_source_that_is_not_there_leaves_nothing(engine: Engine) -> None:
    nobody = replace(model(), preset=model().preset.model_copy(update={"source_id": "nobody"}))
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        take(engine, nobody)
    assert found(engine) == []

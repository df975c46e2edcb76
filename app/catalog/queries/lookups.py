"""Resolve names of sizes, series, regions, places, GPUs, language models and fields to keys of the catalog.

A name that the catalog does not have is an error that suggests the nearest ones.

"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import orjson

from app.catalog.names import as_written, closest_regions, display_keys, model_key, model_keys, region_key, series_key
from app.catalog.presets import Preset, split_names
from app.catalog.providers import PROVIDERS, split_provider
from app.catalog.queries.params import FILTERED_FIELDS, WORD_FILTERS, PlaceParams
from app.catalog.queries.price_scope import KEYS, key_parameters
from app.catalog.statements import RAW, Statement, cached_statement
from app.catalog.tables import select_all
from app.db import statements
from app.db.dialects import Dialect, parameters
from app.db.statements import BoundStatement, Reader, Rows, fetch, to_dicts
from app.errors import Ambiguous, BadQuery, NotFound
from app.nearest import TWO_TYPOS_LENGTH, closest_spellings, did_you_mean, nearest, starting_with
from app.validation import MAX_ERRORS

_RUN = re.compile(r"[*?]*\*[*?]*")
_LETTER = "[^\n]"


def compile_glob(glob: str) -> re.Pattern[str]:
    """Return the regular expression that fully matches what a glob does."""
    ordered = _RUN.sub(lambda run: "?" * run[0].count("?") + "*", glob)
    first, *others = (
        "".join(_LETTER if letter == "?" else re.escape(letter) for letter in part) for part in ordered.split("*")
    )
    middle = "".join(f"(?>{_LETTER}*?{part})" for part in others[:-1])
    return re.compile(f"{first}{middle}{_LETTER}*{others[-1]}" if others else first)


NEAREST_WINDOW = 500
"""Suggestions for an unknown size are searched among this many names before it in the alphabet, and as many after."""


def get_size_keys(reader: Reader, names: Sequence[str], series: Mapping[str, str]) -> tuple[str, ...]:
    """Return the key of each size, by its name or an alias, in any case; raises NotFound for those that are unknown.

    A name may begin with its provider: `aws:m5.large`.
    `series` are the ids of all series by the keys of their names, as a snapshot has them: an unknown name may be that
    of a series.
    """
    for name in names:
        if "\0" in name:  # PostgreSQL takes no text that has one
            raise NotFound("size", as_written(name))
    split = [split_provider(name) for name in names]
    forms = [display_keys(bare) for _, bare in split]
    rows = fetch(reader, _with_names(_keys_statement, [form for keys in forms for form in keys]))
    # A size's own name wins over the alias of another.
    key_of = {named: key for named, key, _ in rows if named != key}
    key_of |= {key: key for named, key, _ in rows if named == key}
    sellers = {key: seller for _, key, seller in rows}
    size_keys: list[str] = []
    unknown: list[NotFound] = []
    for name, (provider, _), keys in zip(names, split, forms, strict=True):
        meant = dict.fromkeys(key_of[form] for form in (keys[-1:] if keys[-1] in key_of else keys) if form in key_of)
        if provider is not None:
            meant = {key: None for key in meant if sellers[key] == provider.id}
        if len(meant) != 1 and len(unknown) < MAX_ERRORS:
            unknown.append(_no_size(reader, as_written(name), keys[0], series))
        size_keys += meant
    if unknown:
        first, *others = unknown
        first.args = (" ".join(map(str, unknown)),)  # the first is about its name, and says what else is unknown
        first.others = tuple(others)
        raise first
    return tuple(size_keys)


def _no_size(reader: Reader, name: str, key: str, series: Mapping[str, str]) -> NotFound:
    """Return the error for the name of no size: it says that it is one of a series, or which names are near it."""
    if series_key(name) in series:
        series_id = series[series_key(name)]
        return NotFound("size", name, hint=f"{series_id} is a series of sizes; search with series={series_id}.")
    around = fetch(reader, BoundStatement(_KEYS_AROUND, {"key": key}))
    near = starting_with(key, (other for (other,) in around), 2)
    called: dict[str, str] = dict(fetch(reader, _with_names(_names_statement, near))) if near else {}
    return NotFound("size", name, suggestions=tuple(called[other] for other in near if other in called))


def _with_names(statement: Callable[[int], statements.Statement], names: Sequence[str]) -> BoundStatement:
    return BoundStatement(statement(len(names)), {f"name_{index}": name for index, name in enumerate(names)})


@cached_statement(16, short=True)
def _keys_statement(_sql: Dialect, count: int) -> str:
    """Rows: each of `count` names that is known, the key of its size, and its provider."""
    names = ", ".join(parameters("name", count))
    return f"""
        select key as named, key, provider from size where key in ({names})
        union all
        select alias_key, size_key, provider from size_alias join size on size.key = size_alias.size_key
        where alias_key in ({names})"""


_KEYS_AROUND = Statement(
    # The index of the table's key has them, without its rows.
    lambda _sql: (
        f"""
        select * from (select key from size where key >= :key order by key limit {NEAREST_WINDOW}) as later
        union all
        select * from (select key from size where key < :key order by key desc limit {NEAREST_WINDOW}) as earlier"""
    ),
    short=True,
)


@cached_statement(2, short=True)
def _names_statement(_sql: Dialect, count: int) -> str:
    """Rows: each of `count` keys, and the name of its size."""
    return f"select key, name from size where key in ({', '.join(parameters('name', count))})"


def load_series_ids(reader: Reader) -> dict[str, str]:
    """Return the id of each series by the key of its id, of its name and of every alias."""
    return {
        _key_of_series(spelling): series_id
        for series_id, name, aliases in _read(reader, _SERIES_NAMES)
        for spelling in (series_id, name, *split_names(aliases))
    }


def _read(reader: Reader, statement: Statement) -> Rows:
    return fetch(reader, BoundStatement(statement))


_SERIES_NAMES = Statement("select id, name, aliases from series", short=True)
_key_of_series = lru_cache(maxsize=16_384)(series_key)
"""The key of a name of the catalog: each snapshot asks for those of all series."""


def get_series_ids(ids: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of series by id, name or alias; raises NotFound for the first unknown one."""
    series_ids = []
    for name in names:
        key = series_key(name)
        meant = [ids[key]] if key in ids else _without_cloud(ids, key)
        if len(meant) != 1:
            near = meant or [ids[near] for near in starting_with(key, ids, 2)]
            raise NotFound("series", as_written(name), suggestions=tuple(near))
        series_ids += meant
    return tuple(series_ids)


def _without_cloud(ids: Mapping[str, str], key: str) -> list[str]:
    """Return the series that have this name behind that of their cloud: of `p5` aws_p5, of `c4` aws_c4 and gcp_c4."""
    split = ((id_, *id_.partition("_")) for id_ in set(ids.values()))
    return sorted(id_ for id_, cloud, _, name in split if cloud in PROVIDERS and _key_of_series(name) == key)


def resolve_series(ids: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of the series a filter names; raises BadQuery for an unknown one."""
    try:
        return get_series_ids(ids, names)
    except NotFound as unknown:
        raise BadQuery("series", unknown.name, unknown.of_value("GET /series lists them")) from None


def check_regions(regions: "Mapping[str, RegionPlace]", field: str, codes: Iterable[str]) -> None:
    """Check that the catalog has these regions; raises BadQuery with the spelling of the client, naming the nearest."""
    for code in codes:
        if code not in regions:
            hint = did_you_mean(suggest_regions(code, regions), " ")
            raise BadQuery(field, as_written(code), f"no such region; {hint}GET /regions lists them")


def clouds_of_regions(regions: "Mapping[str, RegionPlace]", codes: Sequence[str]) -> str:
    """Return which clouds the regions belong to: `is a region of AWS`, `are regions of AWS and of Oracle Cloud`."""
    clouds = " and of ".join(sorted(PROVIDERS[seller].name for seller in {regions[code].provider for code in codes}))
    return f"{'is a region' if len(codes) == 1 else 'are regions'} of {clouds}"


def check_cloud(
    regions: "Mapping[str, RegionPlace]", field: str, codes: Sequence[str], providers: Collection[str], than: str = ""
) -> None:
    """Check that one of the regions, which exist, is of one of the clouds, if both are given; raises BadQuery.

    The error ends in how the client named the clouds: `than`, by default the parameter `provider`.
    """
    if codes and providers and not any(regions[code].provider in providers for code in codes):
        detail = f"{clouds_of_regions(regions, codes)}, {than or 'not of provider=' + ','.join(providers)}"
        raise BadQuery(field, ",".join(map(as_written, codes)), detail)


def check_regions_of_sizes(
    reader: Reader, regions: "Mapping[str, RegionPlace]", keys: Sequence[str], codes: Sequence[str]
) -> None:
    """Check that the regions exist and that at least one of the sizes belongs to the cloud of one of them.

    Raises BadQuery.
    """
    check_regions(regions, "region", codes)
    sellers = {regions[code].provider for code in codes}
    if not sellers or len({place.provider for place in regions.values()}) == 1:
        return
    rows = fetch(reader, BoundStatement(_SELLERS, key_parameters(keys)))
    sizes = {key: (name, provider) for key, name, provider in rows}
    if not sizes or any(provider in sellers for _, provider in sizes.values()):  # an ingest may have removed the sizes
        return
    name, provider = next(sizes[key] for key in keys if key in sizes)
    detail = f"{clouds_of_regions(regions, codes)}, and {name} is a size of {PROVIDERS[provider].name}"
    raise BadQuery("region", ",".join(map(as_written, codes)), detail)


_SELLERS = Statement(lambda sql: f"select key, name, provider from size where {sql.is_listed('key', KEYS)}", short=True)


def suggest_regions(code: str, regions: "Mapping[str, RegionPlace]") -> Sequence[str]:
    """Return the regions of a name or place, `Frankfurt`, else those whose code an unknown one may mean."""
    named = [
        region
        for region, place in regions.items()
        if code in {region_key(name) for name in (place.name, place.place) if name}
    ]
    return named or closest_regions(code, regions)


def explain_other_provider(
    size_name: str, provider: str, region: str, regions: "Mapping[str, RegionPlace]"
) -> str | None:
    """Return in words that a region is of another cloud than a size; None if it is of the same."""
    seller = regions[region].provider
    if seller == provider:
        return None
    return f"{size_name} is a size of {PROVIDERS[provider].name}, and {region} a region of {PROVIDERS[seller].name}"


def get_subject_key(reader: Reader, name: str, series: Mapping[str, str]) -> str:
    """Return the key of whatever a fact can be about: a GPU, a size by any of its names, or a series.

    `series` are those of `get_size_keys`. Raises BadQuery.
    """
    if fetch(reader, BoundStatement(_GPU, {"id": name.lower()})):
        return name.lower()
    try:
        return get_size_keys(reader, (name,), series)[0]
    except NotFound as no_size:
        if series_key(name) in series:
            return series[series_key(name)]
        raise BadQuery("subject", name, f"no size, series or GPU has this name. {no_size}") from None


_GPU = Statement("select id from gpu where id = :id", short=True)


def check_source(reader: Reader, source: str) -> None:
    """Check that the catalog has a source by its id; raises BadQuery naming the nearest."""
    ids = [id_ for (id_,) in _read(reader, _SOURCES)]
    if source not in ids:
        hint = did_you_mean(nearest(source, ids), " ")
        raise BadQuery("source", source, f"no such source; {hint}GET /sources lists them")


_SOURCES = Statement("select id from source", short=True)


def check_field(name: str, fields: Collection[str]) -> None:
    """Check that a field exists; raises BadQuery naming the nearest, or all."""
    if name not in fields:
        hint = did_you_mean(nearest(name, fields)) or f"allowed are {', '.join(fields)}"
        raise BadQuery("field", name, f"no such field; {hint}")


GpuRow = Mapping[str, Any]

MODEL_CHARACTERS = 3
"""The shortest GPU name that is matched as part of a longer one, in characters."""
_FILLER_WORDS = frozenset(("gpu", "tensor", "core", "accelerator")) | {
    *("hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr7", "lpddr5x")
}
"""Words that vendors and drivers put into GPU names and that distinguish no two GPUs of the catalog."""
_VENDOR_OF_BRAND = {"tesla": "nvidia", "geforce": "nvidia", "instinct": "amd", "radeon": "amd"}
_NO_NAMES = {"nvidia", "amd", "intel"} | {
    *("a", "an", "of", "half", "whole", "card", "form", "not", "stated", "server", "edition", "generation")
}
"""Words that names of GPUs have beside what names a GPU."""


def get_gpu(reader: Reader, name: str) -> GpuRow:
    """Return the only GPU model called exactly `name`, else the only one that has all its words.

    Raises NotFound, and Ambiguous where several have them.
    """
    rows, words = find_gpus(reader), _split_words(name)
    exact = [row for row in rows if any(_split_words(alias) == words for alias in _gpu_aliases(row))]
    if len(exact) == 1:
        return exact[0]
    words_of = {row["id"]: gpu_words(row) for row in rows}
    ids = _ids_with_words(words_of, _meaningful_words(name, frozenset().union(*words_of.values())))
    if len(ids) > 1:
        raise Ambiguous("GPU", name, suggestions=tuple(ids))
    if not ids:
        raise NotFound("GPU", name, suggestions=tuple(closest_spellings("-".join(words), words_of, 2)))
    return next(row for row in rows if row["id"] == ids[0])


def find_gpus(reader: Reader) -> Sequence[GpuRow]:
    """Find all GPU models, in the order of their ids."""
    query = BoundStatement(_GPUS)
    return to_dicts(query, fetch(reader, query))


_GPUS = Statement(f"{select_all('gpu')} order by id", short=True)


def gpu_words(row: GpuRow) -> frozenset[str]:
    """Return the words of all names of a GPU, its vendor, and the number of its memory in GiB."""
    memory = f"{row['memory_gib']:g}" if row["memory_gib"] is not None else ""
    names = (*_gpu_aliases(row), row["vendor"] or "")
    return frozenset((memory, *(word for name in names for word in _split_words(name))))


def _gpu_aliases(row: GpuRow) -> tuple[str, ...]:
    return (row["id"], row["model"], *split_names(row["aliases"]))


def _split_words(name: str) -> tuple[str, ...]:
    """Return the words of a name without the unit of a memory and the generation of a socket.

    `A100-SXM4-80GB` gives a100, sxm and 80.
    """
    words = re.findall(r"[a-z0-9]+", name.lower())
    return tuple(re.sub(r"^(sxm)\d?$", r"\1", re.sub(r"(?<=\d)gi?b$", "", word)) for word in words)


def _meaningful_words(name: str, vocabulary: Collection[str]) -> list[str]:
    """Return the words of a name that distinguish GPUs: `h100nvl` is taken apart, and a brand means its vendor."""
    words = (_VENDOR_OF_BRAND.get(word, word) for word in _split_words(name) if word not in _FILLER_WORDS)
    return [part for word in words for part in _split_compound(word, vocabulary)]


def _split_compound(word: str, vocabulary: Collection[str]) -> Sequence[str]:
    """Split a word into known words; one whose parts are not all known stays whole."""
    if word in vocabulary or word.isdigit():
        return (word,)
    for cut in range(len(word) - 1, 1, -1):
        rest = _split_compound(word[cut:], vocabulary) if word[:cut] in vocabulary else ()
        if rest and all(part in vocabulary for part in rest):
            return (word[:cut], *rest)
    return (word,)


def _ids_with_words(words_of: Mapping[str, Collection[str]], words: Sequence[str]) -> list[str]:
    """Return the ids of the GPUs that have all these words; numbers, vendors and common words name no GPU."""
    if all(word.isdigit() or word in _NO_NAMES for word in words):
        return []
    return [id_ for id_, has in words_of.items() if set(words) <= set(has)]


@dataclass(frozen=True)
class GpuNames:
    """What the GPUs of the catalog are called.

    `names` are the models, families and ids that the `gpu` filter compares with, `words` those of each GPU by its id,
    which `family_of` has, too.
    """

    names: frozenset[str]
    words: Mapping[str, frozenset[str]]
    vendors: tuple[str, ...]
    families: tuple[str, ...]
    family_of: Mapping[str, str]

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Return all words of all GPUs."""
        return frozenset(word for words in self.words.values() for word in words)


def load_gpu_names(reader: Reader) -> GpuNames:
    """Read the names that GPUs have and that sizes give them: a size may name a model without a row of its own."""
    rows, of_sizes = find_gpus(reader), _read(reader, _GPUS_OF_SIZES)
    names = [*(row[column] for row in rows for column in ("id", "model", "family")), *(model for model, _ in of_sizes)]
    without_row = {model for model, _ in of_sizes if model} - {row[of] for row in rows for of in ("model", "family")}
    vendors = {vendor for vendor in (*(row["vendor"] for row in rows), *(vendor for _, vendor in of_sizes)) if vendor}
    return GpuNames(
        names=frozenset(name.lower() for name in names if name),
        words={row["id"]: gpu_words(row) for row in rows},
        vendors=tuple(sorted(vendors)),
        families=tuple(sorted({row["family"] for row in rows if row["family"]} | without_row)),
        family_of={row["id"]: row["family"] or row["model"] for row in rows},
    )


_GPUS_OF_SIZES = Statement("select distinct gpu_model, gpu_vendor from size")


def resolve_gpus(gpus: GpuNames, names: Iterable[str], field: str = "gpu") -> tuple[str, ...]:
    """Return globs for the `gpu` filter: a name of the catalog, or a glob that matches one, stays as it is.

    Another spelling becomes the ids of all GPUs that have its words: `NVIDIA A100 80GB` those of any A100 with 80 GB.
    Raises BadQuery, naming the nearest, for what no GPU of the catalog is called.
    """
    globs = dict.fromkeys(glob for name in names for glob in _to_globs(gpus, name, field))
    return tuple(sorted(globs))


def load_words(reader: Reader) -> dict[str, tuple[str, ...]]:
    """Read the words that sizes have, by the filters on them; a text may join several: `NVMe, SCSI`."""
    texts = _read(reader, _WORDS)
    words = ({word for text in column if text for word in text.split(", ")} for column in zip(*texts, strict=True))
    return {name: tuple(sorted(of_field)) for name, of_field in zip(WORD_FILTERS, words, strict=False)}


_WORDS = Statement(f"select distinct {', '.join(FILTERED_FIELDS[name] for name in WORD_FILTERS)} from size", kinds=RAW)


def check_word(words: Mapping[str, Sequence[str]], name: str, word: str) -> None:
    """Check that some size has a word that a filter asks for; raises BadQuery naming the nearest."""
    allowed = words.get(name, ())
    if word.lower() not in map(str.lower, allowed):
        hint = did_you_mean(closest_spellings(word, allowed), " ")
        raise BadQuery(name, as_written(word), f"{hint}allowed are {', '.join(allowed) or 'none'}")


def _to_globs(gpus: GpuNames, written: str, field: str) -> Sequence[str]:
    name, written = written.strip().lower(), as_written(written).strip()
    if name in gpus.names or (_is_glob(name) and any(map(compile_glob(name).fullmatch, gpus.names))):
        return (name,)
    words = [] if _is_glob(name) else _meaningful_words(name, gpus.vocabulary)
    ids = _ids_with_words(gpus.words, words)
    if not ids:
        hint = did_you_mean(closest_gpus(gpus, name), " ")
        detail = f"no GPU of the catalog is called {written}; {hint}GET /gpus lists them: {', '.join(gpus.families)}"
        raise BadQuery(field, written, detail)
    return ids


def closest_gpus(gpus: GpuNames, name: str) -> Sequence[str]:
    """Return families of GPUs that share a word of letters and digits (`h100`), else have a part of it.

    Without any, names a typo away.

    `gb200` is near `b200`, and `h100` near `h1000`; names that are a typo away have the same digits.
    Short names are not taken for typos of each other: B100 and A100 are different GPUs.
    """
    if name in (vendor.lower() for vendor in gpus.vendors):
        return (f"gpu_vendor={name}",)
    words = [] if _is_glob(name) else _meaningful_words(name, gpus.vocabulary)
    models = [word for word in words if re.search(r"[a-z]\d|\d[a-z]", word)]
    parts = {part for part in gpus.vocabulary if any(_is_part(part, word) or _is_part(word, part) for word in models)}
    closest = max(map(len, parts), default=0)
    alike = [id_ for id_, has in gpus.words.items() if any(word in has for word in models)] or [
        id_ for id_, has in gpus.words.items() if any(len(part) == closest for part in parts & has)
    ]
    digits = re.sub(r"\D", "", name)
    near = closest_spellings(name, gpus.names, 2) if len(name) >= TWO_TYPOS_LENGTH else ()
    families = [*dict.fromkeys(gpus.family_of[id_] for id_ in alike)]
    return families[:3] or [spelling for spelling in near if re.sub(r"\D", "", spelling) == digits]


def _is_part(part: str, word: str) -> bool:
    """Return whether a word of letters and digits begins or ends with another."""
    is_model = re.search(r"[a-z]\d", part) and len(part) >= MODEL_CHARACTERS
    return bool(is_model) and (word.startswith(part) or word.endswith(part))


def _is_glob(name: str) -> bool:
    return "*" in name or "?" in name


class RegionPlace(NamedTuple):
    """Whose a region is, and where; None where it has no place.

    `name` is how the vendor calls it, `place` the city or state.
    """

    provider: str
    country: str | None
    continent: str | None
    name: str | None = None
    place: str | None = None


def load_region_places(reader: Reader) -> dict[str, RegionPlace]:
    """Return the places of all regions by their codes."""
    return {code: RegionPlace(*place) for code, *place in _read(reader, _PLACES)}


_PLACES = Statement(f"select code, {', '.join(RegionPlace._fields)} from region")


def load_formulas(reader: Reader) -> dict[str, str]:
    """Return how prices were computed, by the sources that no list states the prices of."""
    return dict(_read(reader, _FORMULAS))


_FORMULAS = Statement("select id, formula from source where formula is not null")


def load_price_parts(reader: Reader, sources: Collection[str]) -> dict[tuple[str, str], str]:
    """Return what the prices of these sources are computed from, by source and size."""
    if not sources:
        return {}
    stated = BoundStatement(_PRICE_PARTS, {"sources": orjson.dumps(sorted(sources)).decode()})
    return {(source, size): parts for source, size, parts in fetch(reader, stated)}


_PRICE_PARTS = Statement(
    lambda sql: (
        f"""
        select source_id, subject, value from fact
        where {sql.is_listed("source_id", "sources")} and field = 'price_parts' and kind = 'size'"""
    )
)


ParamsT = TypeVar("ParamsT", bound=PlaceParams)


def place_regions(params: ParamsT, places: Mapping[str, RegionPlace], *, by_provider: bool = False) -> ParamsT:
    """Return parameters whose regions are those in the countries and continents that they name.

    Where they name regions, too, only these count; `by_provider` says that its provider is a condition on regions, as
    of prices, each of which is in a region of one. Raises BadQuery where no region is meant.
    """
    providers: Collection[str] = getattr(params, "provider", ())
    regions: Collection[str] = getattr(params, "region", ())
    check_cloud(places, "region", tuple(regions), providers)
    wanted: tuple[Collection[str], ...] = (providers, params.country, params.continent)
    if not (params.country or params.continent or (by_provider and providers)):
        return params
    there = [
        code
        for code, place in sorted(places.items())
        if all(not values or name in values for name, values in zip(place, wanted, strict=False))
    ]
    field, values = next((name, given) for name, given in zip(_FIELDS, wanted[::-1], strict=True) if given)
    if not there:
        given = dict(zip(_FIELDS, map(",".join, wanted[::-1]), strict=True))
        others = [f"{name}={texts}" for name, texts in given.items() if texts and name != field]
        if others and any(getattr(place, field) in values for place in places.values()):
            raise BadQuery(field, given[field], f"no region there has {' and '.join(others)}")
        allowed = sorted({str(value) for place in places.values() if (value := getattr(place, field))})
        hint = did_you_mean(nearest(",".join(values), allowed), " ")
        detail = f"no region there is known; {hint}{field} is one of {', '.join(allowed)}"
        raise BadQuery(field, ",".join(values), detail)
    matching = [code for code in there if not regions or code in regions]
    if not matching:
        raise BadQuery(
            "region", ",".join(regions), f"not in {field}={','.join(values)}; GET /regions says where each region is"
        )
    return params.model_copy(update={"region": tuple(matching)})


_FIELDS = ("continent", "country", "provider")


ModelsByKey = Mapping[str, Mapping[str, Any]]
"""The rows of all models by the key of each of their names."""


def get_model(models: ModelsByKey, name: str) -> Preset:
    """Return a language model by its id, its name, its repository or an alias, in any spelling.

    Raises NotFound naming the nearest.
    """
    id_ = name.strip().lower()
    row = next((model for model in models.values() if model["id"] == id_), None)
    return Preset.model_validate(row if row is not None else get_model_row(models, name))


def load_models(reader: Reader) -> ModelsByKey:
    """Read all models by the key of each of their names."""
    query = BoundStatement(_MODELS)
    return {
        key: row
        for row in to_dicts(query, fetch(reader, query))
        for key in model_keys((row["id"], row["name"], row["hf_repo"] or "", *split_names(row["aliases"])))
    }


_MODELS = Statement(f"{select_all('model')} order by id")

RELEASE_TYPES: Mapping[str, str] = {
    "fp8": "fp8",
    "fp8-dynamic": "fp8",
    "int8": "int8",
    "awq": "awq_int4",
    "awq-int4": "awq_int4",
    "gptq": "gptq_int4",
    "gptq-int4": "gptq_int4",
    "gptq-int8": "int8",
    "bnb-4bit": "nf4",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "bf16": "bf16",
    "fp16": "fp16",
}
"""What the names of repositories end in, and the type of the weights that it says."""

RELEASE_VARIANTS = ("instruct", "chat", "it", "base", "thinking", "[0-9]{4}")
"""Other endings of a release of the same size: how it was trained, and the year and month."""

_SUFFIX = re.compile(f"[- ](?:(?P<type>{'|'.join(RELEASE_TYPES)})|(?P<variant>{'|'.join(RELEASE_VARIANTS)}))$")


def get_release_row(models: ModelsByKey, name: str) -> Mapping[str, Any]:
    """Return the row of a model by any of its names, or by that of a release of it; raises NotFound naming the nearest.

    A name that ends in a type, such as `-FP8` or `-AWQ`, has that as its `dtype`, whoever released it, and the ending
    as `released_as`. A variant such as `-Instruct-2507` is a release of a model whose name says its size; the longest
    context of a dated one is unknown.
    """
    rest = name.strip().lower().replace("_", "-")
    types: list[str] = []
    variants: list[str] = []
    while (suffix := _SUFFIX.search(rest)) and model_key(rest) not in models:
        (types if suffix["type"] else variants).append(suffix[0])
        rest = rest[: suffix.start()]
    forms = (rest, rest.rpartition("/")[2]) if types else (rest,)
    key = next((key for form in forms if (key := model_key(form)) in models), None)
    if key is None or (variants and not _SIZED.search(key)):
        return get_model_row(models, name)
    row = models[key]
    if types:
        row = {**row, "dtype": RELEASE_TYPES[types[0][1:]], "fp8_block": None, "released_as": types[0]}
    dated = any(variant[1:].isdigit() for variant in variants)
    return {**row, "max_context_tokens": None} if dated else row


def _beginning_of(key: str, models: ModelsByKey) -> tuple[str, ...]:
    """Return the longest known key that a key begins with: of a variant, as `llama-3.1-70b-awq`, its model.

    The known one ends in a size, and a letter follows: another size is another model.
    """
    begun = [
        model for model in models if key.startswith(model) and _SIZED.search(model) and key[len(model) :][:1].isalpha()
    ]
    return (max(begun, key=len),) if begun else ()


_SIZED = re.compile(r"\d[bm]$")


def _may_be_typo(key: str, known: str) -> bool:
    """Return whether the first digits of both, the generation of a model, are equal, or the key has none."""
    written, other = re.search(r"\d", key), re.search(r"\d", known)
    return written is None or (other is not None and written[0] == other[0])


def get_model_row(models: ModelsByKey, name: str) -> Mapping[str, Any]:
    """Return the row of a model by any of its names; raises NotFound naming the nearest."""
    key = model_key(name)
    if key not in models:
        alike = starting_with(key, models, 4)
        near_keys = _beginning_of(key.rpartition("/")[2], models) or [at for at in alike if _may_be_typo(key, at)]
        nearest = dict.fromkeys(models[near]["id"] for near in near_keys)
        raise NotFound("model", name, suggestions=tuple(nearest)[:2])
    return models[key]

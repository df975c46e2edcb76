"""Reads what people type into the box of the search page: `h100 westeurope spot <10`.

A GPU, a processor, a place, a way to buy and a bound each become an ordinary parameter. What is not understood stays as
text to find in names. A name as it is written comes before one of the same letters, and a cloud or GPU beside the name
of a size decides whether that size is meant. A misspelled word is read as the nearest that is known, unless some name
has it as it is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from app.catalog.names import CONTINENTS, model_key, word_start
from app.catalog.providers import PROVIDERS, provider_of_region
from app.catalog.queries.exchange_rates import CurrencyRate, converted_name
from app.catalog.queries.lookups import RELEASE_TYPES
from app.catalog.queries.params import SizeFilter
from app.catalog.queries.provenance import find_currencies
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import Statement
from app.db.statements import BoundStatement
from app.nearest import closest_spellings, starting_with
from app.web.sizes_view import HOURS

MAX_SUGGESTIONS = 8
_MAX_MODELS = 5

_WORDS: Mapping[str, Mapping[str, Any]] = {
    **{word: {"arch": "arm64"} for word in ("arm", "arm64", "aarch64")},
    **{word: {"arch": "x64"} for word in ("x64", "x86", "amd64")},
    "linux": {"os": "linux"},
    "windows": {"os": "windows"},
    "spot": {"purchase": "spot"},
    **{word: {"purchase": "reserved_1y"} for word in ("reserved", "reservation", "reservations")},
    **{word: {"purchase": "savings_1y"} for word in ("savings", "savings plan", "savings plans")},
    "nvlink": {"nvlink": True},
    "nvme": {"local_nvme": True},
    **{word: {"infiniband": True} for word in ("infiniband", "rdma")},
    "burstable": {"burstable": True},
    **{
        f"{no} {word}": {"local_nvme" if word == "nvme" else word: False}
        for no in ("no", "not", "without", "non")
        for word in ("nvlink", "nvme", "infiniband", "burstable")
    },
    **{f"{no} preview": {"status": ("current",)} for no in ("no", "not", "without")},
    "gpu": {"category": ("gpu_accelerated",)},
    "cpu": {"max_gpus": 0},
    **{word: {"status": (word,)} for word in ("preview", "retiring", "retired", "withdrawn")},
    **{word: {"status": ("retiring",)} for word in ("retire", "retires")},
    **{f"{unit}ly": {"unit": unit} for unit in HOURS},
    **{word: {"provider": (name,)} for name in PROVIDERS for word in (name, PROVIDERS[name].name.lower())},
    **{word: {"provider": (name,)} for word, name in (("amazon", "aws"), ("google", "gcp"), ("oracle", "oci"))},
    **{word: {"country": (code,)} for word, code in (("us", "US"), ("usa", "US"), ("uk", "GB"), ("uae", "AE"))},
    **{continent.replace("_", " "): {"continent": (continent,)} for continent in CONTINENTS},
    "eu": {"continent": ("europe",)},
    **{
        word: {}
        for word in (
            *("cheap", "cheapest", "in", "with", "and", "or", "per", "on", "demand", "for", "to"),
            *("a", "an", "the", "of", "from", "price", "cost", "costs"),
        )
    },
    **{word: {} for word in ("vm", "vms", "size", "sizes", "instance", "instances", "machine", "machines", "server")},
}
"""Words that are a filter, or nothing."""

_NUMBER = r"(\d+(?:\.\d+)?)"
_BYTES = rf"{_NUMBER} ?([gt])i?b"
_DISK = r"(?:nvme|ssd|(?:local )?(?:disks?|storage))(?: ssds?| disks?| storage)?"
_INFINIBAND = "(?:infiniband|rdma)"
_NETWORK = "(?:network(?:ing)?|bandwidth)"
_OF_GPU = "(?:vram|gpu memory)"
_OF_VM = "(?:ram|memory|mem)"
_QUANTITIES = (
    (r"(\d+)", "(?:vcpus?|cpus?|cores?)", "vcpus"),
    (_BYTES, _OF_GPU, "gpu_mem_per_gpu"),
    (_BYTES, _OF_VM, "memory"),
    (_BYTES, _DISK, "local_disk"),
    (_NUMBER, f"gbps {_INFINIBAND}", "infiniband_gbps"),
    (_NUMBER, f"gbps(?: {_NETWORK})?", "network_gbps"),
    (r"(\d+(?:/[1-9]\d*|\.\d+)?)", "gpus?", "gpus"),
)
_UNITS = "|".join(unit for _, unit, _ in _QUANTITIES)
_CURRENCIES = {
    **dict.fromkeys(("$", "dollar", "dollars"), "usd"),
    **dict.fromkeys(("€", "euro", "euros"), "eur"),
    **dict.fromkeys(("£", "pound", "pounds"), "gbp"),
}
_PRICE = rf"{_NUMBER}(?:¤([a-z]{{3}}))?(?: ?/h)?"
_YEARS = "[ -]?(?:y|yrs?|years?)"
_PHRASES: tuple[tuple[str, str], ...] = (
    (r"(?:no|without|0) ?gpus?", "max_gpus"),
    *(
        (phrase, f"{end}_{name}")
        for number, unit, name in _QUANTITIES
        for turned in (False, True)
        for end, sign in (("max", "[<≤]"), ("min", "(?:[>≥]|of|:)?"))
        if f"{end}_{name}" in SizeFilter.model_fields
        for phrase in (f"{unit} ?{sign} ?{number}" if turned else f"{sign}{number} ?{unit}",)
    ),
    (f"[<≤]{_PRICE}", "max_usd_per_hour"),
    (f"[>≥]{_PRICE}", "min_usd_per_hour"),
    *(
        (phrase, kind)
        for kind, words in (("reserved", "(?:reserved|reservations?)"), ("savings", "savings(?: plans?)?"))
        for phrase in (rf"{words}[ _-]([13]){_YEARS}", rf"([13]){_YEARS}[ -]{words}")
    ),
)
"""Numbers with what they are of, and the parameter that each is."""
_WITHOUT_FILTER = re.compile(
    rf"[<≤]{_BYTES} ?{_DISK}|[<≤]{_NUMBER} ?gbps|[<>≤≥]{_NUMBER} ?(?:mbps|iops|disks?|nics?|zones?)"
    rf"|(?<!\S)(?![13]\D)\d+{_YEARS}(?!\w)|[<>≤≥]{_PRICE} per |\bretir\w*(?: \w+)? 20\d\d\b"
)
"""Bounds that are no filter: a text with one stays as it is, lest its number be taken for another's."""
_PLAIN = r"\d+(?:\.\d+|/[1-9]\d*)?(?:[gt]i?b)?"
_AMOUNT = rf"(?:{_PLAIN} ?(?:{_UNITS})|\d+(?:\.\d+)?[gt]i?b)(?!\S)"
"""A number with what it is of."""
_OR_UNIT = rf" or \w+ (?:{_UNITS})(?!\S)"
_SPELLINGS = (
    (r"[,;](?!\S)", ""),
    (r"(?<=[a-z])[/+,;](?=\d)", " "),
    (rf"(\d)-(?=(?:{_UNITS})(?!\w))", r"\1 "),
    (r"\b(?:no|not) (?:more than|over|above) ?(?=\d)", "≤"),
    (r"\b(?:no|not) (?:less than|fewer than|under|below) ?(?=\d)", "≥"),
    (r"(?:>=|≥=?|\b(?:at least|min)) ?(?=\d)", "≥"),
    (r"(?:<=|≤=?|\b(?:at most|up to|max)) ?(?=\d)", "≤"),
    (r"(?:>|\b(?:over|above|more than)) ?(?=\d)", ">"),
    (r"(?:<|\b(?:under|below|less than|fewer than)) ?(?=\d)", "<"),
    (r"(\d) ([gt]i?b)(?!\S)", r"\1\2"),
    (r"(?<!\S)(\d+(?:\.\d+)?)\+ ?(?=[a-z])", r"≥\1 "),
    (rf"(?<!\S)({_AMOUNT}|{_PLAIN}(?={_OR_UNIT})) or (?:less|fewer|below)(?!\S)", r"≤\1"),
    (rf"(?<!\S)({_AMOUNT}|{_PLAIN}(?={_OR_UNIT})) or (?:more|above)(?!\S)", r"≥\1"),
    (rf"([<>≤≥])({_AMOUNT}) and (?={_AMOUNT})", r"\1\2 \1"),
    (rf"(?<!\S)(?:exactly|==?) ?({_AMOUNT})", r"≥\1 ≤\1"),
    (
        rf"(?<!\S)(?<![gti]b )(?<!gpu )((?:{_OF_GPU}|{_OF_VM}) ?[<>≤≥:]? ?\d+(?:\.\d+)?)(?! (?:{_UNITS})(?!\S))(?!\S)",
        r"\1gb",
    ),
    (rf"(?<!\S)({_INFINIBAND}|{_NETWORK}) ([<>≤≥]?{_NUMBER} ?gbps)(?!\S)", r"\2 \1"),
    (r"(?: ?/ ?|(?<!\S)(?:per|an?) )(hour|day|month|year)(?!\S)", r" \1ly"),
    (r"(?<!\S)(\d{1,2}) ?[x×*] ?(?!x?large)(?=[a-z])", r"\1 "),
    (r"(?<=\w)(?=[:*×][1-9]\d?(?!\S))", " "),
    (r"(?<= )([x×*]) (?=[1-9]\d?(?!\S))", r"\1"),
)
"""What is written in several ways, and how the phrases have it."""
_OF_BYTES = "|".join(unit for number, unit, _ in _QUANTITIES if number == _BYTES)
_OF_OTHERS = "|".join(unit for number, unit, _ in _QUANTITIES if number != _BYTES)
_RANGE = re.compile(
    rf"(?:(?<!\d )(?<!\S)(?P<before>{_UNITS}) )?(?<!\S)(?P<word>(?:between|from) )?"
    rf"(?P<least>{_PLAIN})(?P<money>¤[a-z]{{3}})? ?(?P<joint>-|–|\.\.|to|and) ?(?P<most>{_PLAIN})"
    rf"(?P<unit> ?(?:{_OF_OTHERS})|¤[a-z]{{3}}|(?<=b) ?(?:{_OF_BYTES}))?(?!\S)(?= ?(?P<next>\S*))"
)
_MEMORY = re.compile(f"([<>≤≥]?){_BYTES}")
_NEGATIONS = frozenset({"no", "not", "non", "without", "except", "exclude", "excluding"})
_NOT_NEGATED = "".join(f"(?<!{word} )" for word in sorted(_NEGATIONS))
_COUNT = re.compile(r"\d{1,2}(?:/[1-9]\d*|\.\d+)?")
_GPU_COUNT = re.compile(r"(.+\d)(x[1-9]\d?)")
_COUNT_AFTER = re.compile(r"([x×*:])([1-9]\d?)|()([1-8])")
"""The number of a GPU before and after its name: `H100:8` is exactly 8, as in commands."""
_PARTS = re.compile(r"[_\-.,/]+")


@dataclass(frozen=True)
class Vocabulary:
    """What words can be: codes of regions and countries by their names, GPUs, processors, makers, sizes, models."""

    regions: Mapping[str, tuple[str, ...]]
    countries: Mapping[str, str]
    gpus: frozenset[str]
    words: Mapping[str, Sequence[str]]
    """The words that sizes have, by the filters on them: makers of processors before those of GPUs, `snp`, `efa`."""
    cpus: frozenset[tuple[str, ...]]
    currencies: Mapping[str, str]
    sizes: Mapping[str, str]
    models: Mapping[str, str]
    facts: Mapping[str, tuple[str, str]]
    """The provider of each size by its name in lower case, and the text that `q` looks through."""

    @cached_property
    def texts(self) -> str:
        """Return the texts of all sizes, each in a line behind a line break."""
        return "".join(f"\n{text}" for _, text in self.facts.values())

    def has(self, words: str) -> bool:
        """Return whether `q` finds words, in one place of a text."""
        return words in self.texts and re.search(word_start(words) + re.escape(words), self.texts) is not None

    @cached_property
    def by_letters(self) -> Mapping[str, Mapping[str, Any]]:
        """Return what regions, sizes and GPUs mean by their letters and digits alone: `useast1` any region of these."""
        regions: dict[str, tuple[str, ...]] = {}
        for name, codes in self.regions.items():
            if name[-1].isdigit() or "-" not in name:
                regions[_letters(name)] = (*regions.get(_letters(name), ()), *codes)
        named = {_letters(name): self.meanings[name] for name in (*self.sizes, *self.gpus)}
        return {letters: {"region": codes} for letters, codes in regions.items()} | named

    @cached_property
    def meanings(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the parameters that each name is; of what is several things the later one is meant."""
        return {
            **{word: {"currency": code.upper()} for word, code in self.currencies.items()},
            **{stem: {"name": (name.lower(),)} for stem, name in self.sizes.items()},
            **{word: {name: word} for name, words in self.words.items() for word in words},
            **{name: {"gpu": (gpu_filter(name),)} for name in self.gpus},
            **{name: {"country": (code,)} for name, code in self.countries.items()},
            **{name: {"region": codes} for name, codes in self.regions.items()},
            **_WORDS,
        }

    @cached_property
    def known(self) -> Mapping[str, Sequence[str]]:
        """Return all words that are a filter, but for names of sizes, by what of them is not mistyped."""
        words = (word for name in ("gpu_vendor", "cpu_vendor") for word in self.words.get(name, ()))
        by_code: dict[str, list[str]] = {}
        for word in (*_WORDS, *self.regions, *self.countries, *self.gpus, *words, *self.cpu_words):
            by_code.setdefault(_code(word), []).append(word)
        return by_code

    @cached_property
    def cpu_words(self) -> frozenset[str]:
        """Return the words of processors that distinguish one from others: lines, generations and models."""
        return frozenset(word for words in self.cpus for word in words if len(word) >= _MIN_CPU_WORD) - _OF_ANY_CPU


_MIN_CPU_WORD = 4
_OF_ANY_CPU = frozenset(
    {"processor", "generation", "high", "frequency", "lake", "rapids", "bridge", "azure", "scalable"}
)
"""Words of names of processors that alone say nothing."""


def gpu_filter(name: str) -> str:
    """Return the filter by a GPU: a model with its memory means all of its kinds, which a hyphen has read by words."""
    return re.sub(r" (?=\d+gb$)", "-", name)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def _code(name: str) -> str:
    """Return what of a name is not mistyped but means another: its digits, and its first letter if it has any."""
    digits = re.sub(r"\D", "", name)
    return digits and name[0] + digits


def load_vocabulary(catalog: Catalog) -> Vocabulary:
    """Read the vocabulary of the catalog."""
    places, sizes = (catalog.fetch(BoundStatement(statement)) for statement in (_PLACES, _SIZES))
    codes = {code.lower() for code in find_currencies(catalog)}
    regions: dict[str, tuple[str, ...]] = {}
    for code, name, place, *_ in places:
        beginning = re.sub(r"-?\d+$", "", code) if "-" in code else ""  # `us-east` is all of that number
        for written in {text.lower() for text in (name, place, beginning) if text}:
            regions[written] = (*regions.get(written, ()), code)
    names = {name for _, _, model, *_ in sizes if model for name in model.lower().split(" or ")}
    return Vocabulary(
        regions=regions | {code: (code,) for code, *_ in places},
        countries={geography.lower(): country for *_, geography, country in places if geography and country},
        gpus=catalog.snapshot.gpus.names,
        words={name: [*map(str.lower, {*words} - {"none"})] for name, words in [*catalog.snapshot.words.items()][::-1]},
        cpus=frozenset(tuple(re.sub("[()/]", " ", name).split()) for name in names),
        currencies={
            word: code for word, code in ({code: code for code in codes} | _CURRENCIES).items() if code in codes
        },
        models={key: row["id"] for key, row in catalog.snapshot.models.items()},
        sizes={name.lower().removeprefix("standard_"): name for name, *_ in sizes},
        facts={name.lower(): (provider, text) for name, text, *_, provider in sizes},
    )


_PLACES = Statement("select code, name, place, geography, country from region")
_SIZES = Statement("select name, search_text, cpu_model, provider from size")


def read_words(text: str, vocabulary: Vocabulary, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that a text means, `q` among them for what is left of it; empty if it is text as it is.

    `given` are the other parameters of the page.
    Bounds of a price that the text does not give in US dollars are in its currency, by their converted names.
    """
    params: dict[str, Any] = {}
    written = rest = " ".join(text.lower().split())
    rest = _mark_prices(rest, vocabulary.currencies)
    for pattern, spelling in _SPELLINGS:
        rest = re.sub(pattern, spelling, rest)
    rest = _RANGE.sub(_bounds_of, rest)
    if _WITHOUT_FILTER.search(rest):
        return {}
    for pattern, field in _PHRASES:
        if match := re.search(rf"(?<!\S){_NOT_NEGATED}{pattern}(?!\S)", rest):
            if field in ("reserved", "savings"):
                params["purchase"] = f"{field}_{match[1]}y"
            elif field.endswith("usd_per_hour"):
                params[field if match[2] == "usd" else converted_name(field)] = match[1]
                params |= {"currency": match[2].upper()} if match[2] not in (None, "usd") else {}
            else:
                number, *unit = match.groups() or ("0",)
                params[field] = _amount(field, _next_whole(field, match[0], number), *unit)
            if field == "min_local_disk" and "nvme" in match[0]:
                params["local_nvme"] = True
            rest = f"{rest[: match.start()]} {rest[match.end() :]}"
    left = re.sub(r"(?<=\d)¤(?=[a-z])", " ", " ".join(_take_names(rest.split(), vocabulary, params, given)))
    makers = vocabulary.words.get("cpu_vendor", ())
    if params.get("gpu_vendor") in makers and params.keys() & _OF_CPUS and not params.keys() & _OF_GPUS:
        params["cpu_vendor"] = params.pop("gpu_vendor")
    return {**params, "q": left or None} if params or left != written else {}


def _mark_prices(text: str, currencies: Mapping[str, str]) -> str:
    """Return a text with its numbers in English, and prices as `0.5¤eur`, which are no numbers of anything else."""
    words = "|".join(map(re.escape, currencies))
    text = re.sub(r"([$€£]) ?(\d+(?:[.,]\d+)*)", r"\2 \1", text)
    text = re.sub(rf"(\d),(?=\d{{1,2}} ?(?:[gt]i?b|gbps|{words})(?!\w))", r"\1.", text)
    text = re.sub(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d.,])", lambda match: match[0].replace(",", ""), text)
    return re.sub(rf"(?<![\w.,]){_NUMBER} ?({words})(?!\w)", lambda match: f"{match[1]}¤{currencies[match[2]]}", text)


def _bounds_of(match: re.Match[str]) -> str:
    """Return a range as its two bounds, which phrases have: `8-16 vcpus`, `between 1 and 2 usd`; others as they are.

    Without a unit the numbers are prices if nothing follows `between 1 and 2`.
    """
    least, most, unit, word = match["least"], match["most"], match["unit"] or match["money"] or "", match["word"]
    before = match["before"] or ""
    if before and not unit:
        unit, before = f" {before}", ""
    is_price = word and not match["next"]
    is_range = word or match["joint"] != "and"
    if not is_range or not (unit or most.endswith("b") or is_price):
        return match[0]
    if most.endswith("b") and not least.endswith("b"):
        least += most[len(most.rstrip("gtib")) :]
    return f"{before} ≥{least}{unit} ≤{most}{unit}".lstrip()


def _next_whole(name: str, phrase: str, number: str) -> str:
    """Return the bound that means more or fewer than a number of things, of which there are whole ones.

    Of GPUs there are parts, too, between 0 and 1.
    """
    if not name.endswith(("_vcpus", "_gpus")) or not number.isdigit():
        return number
    has_parts = name.endswith("_gpus")
    if ">" in phrase:
        return "0.01" if has_parts and number == "0" else str(int(number) + 1)
    if "<" in phrase and int(number):
        return "0.99" if has_parts and number == "1" else str(int(number) - 1)
    return number


def bounds_in_usd(params: Mapping[str, Any], rate: CurrencyRate | None) -> dict[str, Any]:
    """Return parameters that a text means with bounds of its currency in US dollars; without a rate they are.

    Where the text says per what time prices are, bounds are for that, and become those of an hour.
    """
    hours = HOURS[params.get("unit", "hour")]
    bounds = {}
    for name in params:
        units = rate.units_per_usd if rate is not None and "price_per" in name else 1
        if name.endswith("per_hour") and units * hours != 1:
            bounds[name] = f"{Decimal(params[name]) / hours / units:.{4 if hours == 1 else 6}f}"
    return {name.replace("price_per", "usd_per"): bounds.get(name, value) for name, value in params.items()}


_OF_CPUS, _OF_GPUS = {"cpu", "min_vcpus", "max_vcpus"}, {"gpu", "category", "min_gpus", "min_gpu_mem_per_gpu"}
"""What decides whether a maker of both is meant as that of the processor."""


def _amount(name: str, number: str, unit: str = "") -> str:
    """Return a number in the unit of its parameter: GiB, for which vendors write GB of memory, but not GB of disks."""
    if not unit:
        return number
    thousands = {"g": 0, "t": 1}[unit]
    if name == "min_local_disk":
        return str(int(Decimal(number) * 1000**thousands * 10**9 / 2**30))
    return f"{(Decimal(number) * 1024**thousands).normalize():f}"


_WHERE = {"region", "country", "continent"}
_OF_FITS = _WHERE | {"concurrency", "provider", "gpu", "os", "purchase", "currency"}
"""What beside a model the fit page has a place for."""
_USERS = re.compile(r"(?<!\S)(?:for )?(\d{1,6}) ?users?(?!\S)")


def read_workload(text: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the parameters of the fit page for a model, with its type, users and place; empty for any other text."""
    users = _USERS.search(rest := " ".join(text.lower().split()))
    words = _USERS.sub("", rest).split()
    params: dict[str, Any] = {"concurrency": users[1]} if users else {}
    for count in range(len(words), 0, -1):
        model = vocabulary.models.get(model_key(" ".join(words[:count])))
        if model is None:
            continue
        types = [word for word in words[count:] if word in RELEASE_TYPES]
        left = _take_names([word for word in words[count:] if word not in types], vocabulary, params, {})
        if not left and params.keys() <= _OF_FITS:
            return params | {"model": model} | ({"dtype": RELEASE_TYPES[types[0]]} if types else {})
        break
    return {}


def join_params(given: Mapping[str, Any], meant: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a page with those that a text means, which replace places and clouds and join other lists.

    A place replaces all places, and a cloud that has no region of it; a cloud the regions of others.
    """
    providers = {provider_of_region(code).id for code in meant.get("region", ())}
    named = meant.get("provider", ())
    left_out = {*(_WHERE if meant.keys() & _WHERE else ()), *(("provider",) if named else ())}
    if providers and providers.isdisjoint(given.get("provider", providers)):
        left_out.add("provider")
    kept = {name: value for name, value in given.items() if name not in left_out}
    if named and "region" in kept:
        kept["region"] = tuple(code for code in kept["region"] if provider_of_region(code).id in named)
    lists = {name: (*kept.get(name, ()), *value) for name, value in meant.items() if isinstance(value, tuple)}
    return {**kept, **meant, **lists}


def _take_names(
    words: list[str], vocabulary: Vocabulary, params: dict[str, Any], given: Mapping[str, Any]
) -> list[str]:
    """Add what words, alone or several together, are names of; return the words that are left.

    A place in several clouds is its regions in those that the words name. Words that name a size which the others, or
    a cloud or GPU of the page, rule out are read again without it.
    """
    taken = dict(params)
    left = _take_each(words, vocabulary, taken)
    own = [code for code in taken.get("region", ()) if provider_of_region(code).id in taken.get("provider", ())]
    if own:
        taken["region"] = (*own,)
    around = {name: given.get(name, ()) for name in ("gpu", "provider")} | taken
    if ruled_out := {name for name in taken.get("name", ()) if _is_ruled_out(name, around, vocabulary)}:
        sizes = {stem: name for stem, name in vocabulary.sizes.items() if name.lower() not in ruled_out}
        return _take_names(words, replace(vocabulary, sizes=sizes), params, given)
    params.update(taken)
    return left


def _is_ruled_out(size: str, params: Mapping[str, Any], vocabulary: Vocabulary) -> bool:
    """Return whether a size has another cloud or GPU than are named.

    Where no cloud is, so is one that is called as a family of another: `g5` may be `Standard_G5` or `g5.xlarge`.
    """
    provider, text = vocabulary.facts[size]
    gpus = [_letters(gpu) for gpu in params.get("gpu", ())]
    if gpus and not any(gpu in _letters(text) for gpu in gpus):
        return True
    providers = {*params.get("provider", ()), *(provider_of_region(code).id for code in params.get("region", ()))}
    if providers:
        return provider not in providers
    family = size.removeprefix("standard_")
    return any(
        name.startswith((f"{family}.", f"{family}-")) and of != provider for name, (of, _) in vocabulary.facts.items()
    )


def _take_each(words: list[str], vocabulary: Vocabulary, params: dict[str, Any]) -> list[str]:
    left: list[str] = []
    while words:
        count, meant = _name_at(words, vocabulary)
        if count:
            _add(params, meant)
            words = words[count:]
            number = _COUNT_AFTER.fullmatch(words[0]) if "gpu" in meant and words else None
            # A bare number may be of an unknown word behind it.
            if number and (number[1] or not words[1:] or _name_at(words[1:], vocabulary)[0]):
                params["min_gpus"] = number[2] or number[4]
                params |= {"max_gpus": number[2]} if number[1] == ":" else {}
                words = words[1:]
        elif words[0] in _NEGATIONS:
            # There is no filter for what a negation is of: both stay text.
            begin = next(
                (place for place in range(1, len(words)) if _meaning(words[place], vocabulary) != {}), len(words)
            )
            is_number = begin < len(words) and words[begin].lstrip("<>≤≥")[:1].isdigit()
            end = begin + (_name_at(words[begin:], vocabulary)[0] or (2 if is_number else 1))
            left += words[:end]
            words = words[end:]
        else:
            if memory := _MEMORY.fullmatch(words[0]):
                sign, amount, unit = memory.groups()
                of_vm = unit == "t" or not params.keys().isdisjoint(("min_vcpus", "max_vcpus"))
                field = f"{'max' if sign in ('<', '≤') else 'min'}_{'memory' if of_vm else 'gpu_mem_per_gpu'}"
                params[field] = _amount(field, amount, unit)
            elif _COUNT.fullmatch(words[0]) and "gpu" in _name_at(words[1:], vocabulary)[1]:
                params["min_gpus"] = words[0]
            elif (joined := _GPU_COUNT.fullmatch(words[0])) and "gpu" in (_meaning(joined[1], vocabulary) or {}):
                words = ["", *joined.groups(), *words[1:]]
            else:
                left += _respelled(words[0], vocabulary, params)
            words = words[1:]
    return left


def _name_at(words: Sequence[str], vocabulary: Vocabulary) -> tuple[int, Mapping[str, Any]]:
    """Return how many words at the beginning are a name together, at most four, and what it means; 0 for none."""
    for count in range(min(4, len(words)), 0, -1):
        if (meant := _meaning(" ".join(words[:count]), vocabulary)) is not None:
            return count, meant
    return 0, {}


def _add(params: dict[str, Any], meant: Mapping[str, Any]) -> None:
    for name, value in meant.items():
        params[name] = (*params.get(name, ()), *value) if isinstance(value, tuple) else value


def _meaning(name: str, vocabulary: Vocabulary) -> Mapping[str, Any] | None:
    """Return the parameters that a name is, however its parts are joined; None for any other text."""
    written = _letters(name).removeprefix("standard")
    if (meant := vocabulary.meanings.get(name, vocabulary.by_letters.get(written))) is not None:
        return meant
    processor = _processor(name.split(), vocabulary)
    return {"cpu": (processor,)} if processor else None


def _processor(words: Sequence[str], vocabulary: Vocabulary) -> str | None:
    """Return a pattern of the processors whose names have all of the words, in this or the opposite order."""
    if vocabulary.cpu_words.isdisjoint(words):
        return None
    for ordered in (words, words[::-1]):
        for name in vocabulary.cpus:
            following = iter(name)
            if all(word in following for word in ordered):
                return "*".join(ordered)
    return None


def _respelled(word: str, vocabulary: Vocabulary, params: dict[str, Any]) -> list[str]:
    """Read a word that is no name: as it is if it is a part of one, as the nearest, or by its parts."""
    if vocabulary.has(word):
        return [word]
    prefix, _, stem = word.partition("_")
    written = stem if closest_spellings(prefix, ("standard",)) else word
    known = vocabulary.known.get(_code(word), ())
    near = closest_spellings(word, known) or _only_one(written, closest_spellings(written, vocabulary.sizes, 20))
    if near:
        _add(params, _meaning(near[0], vocabulary) or {})
        return []
    parts = _PARTS.split(word)
    return parts if len(parts) > 1 and all(map(vocabulary.has, parts)) else [word]


def _only_one(written: str, near: Sequence[str]) -> Sequence[str]:
    """Return the nearest name if no other is as near: of several the one of the same letters, or none."""
    same = [candidate for candidate in near if sorted(_letters(candidate)) == sorted(_letters(written))]
    return same if len(same) == 1 else near if len(near) == 1 else ()


class CountedWord(NamedTuple):
    """A word that the box understands, what it is, and how many sizes it finds."""

    word: str
    kind: str
    sizes: int


def suggest(text: str, vocabulary: Vocabulary, words: Iterable[CountedWord]) -> list[dict[str, str]]:
    """Return how a text can go on: each the whole text, and what its last word is, with the number of its sizes.

    GPUs, series and regions come before sizes; what begins with the word comes first, then what more sizes have.
    """
    *before, word = text.lower().split(" ")
    if not word:
        return []
    counted = [entry for entry in words if word in entry.word]
    counted.sort(key=lambda entry: (not entry.word.startswith(word), -entry.sizes, entry.word))
    models = sorted({id_ for id_ in vocabulary.models.values() if id_.startswith(word)}) if not before else []
    labels = {
        entry.word: f"{entry.kind}, {entry.sizes:,} {'size' if entry.sizes == 1 else 'sizes'}" for entry in counted
    }
    named = [name.lower() for name in complete_size(word, vocabulary)]
    labels |= dict.fromkeys(models[:_MAX_MODELS], "model: which sizes hold it")
    labels = dict([*labels.items()][: MAX_SUGGESTIONS - min(2, len(named))]) | dict.fromkeys(named, "size")
    return [{"value": " ".join((*before, name)), "label": label} for name, label in [*labels.items()][:MAX_SUGGESTIONS]]


def complete_size(text: str, vocabulary: Vocabulary) -> list[str]:
    """Return the names of sizes that have a text, those that begin with it first, the shortest of these first."""
    written = text.lower().removeprefix("standard_")
    matches = sorted((not stem.startswith(written), len(stem), stem) for stem in vocabulary.sizes if written in stem)
    return [vocabulary.sizes[stem] for _, _, stem in matches[:MAX_SUGGESTIONS]]


def respell_sizes(names: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Return names of sizes, each once, unknown ones replaced by the nearest; empty if one has none."""
    spelled = [
        vocabulary.sizes.get(name.lower().removeprefix("standard_"))
        or next(iter(nearest_sizes(name, vocabulary)), None)
        for name in names
    ]
    return [] if None in spelled else [*dict.fromkeys(filter(None, spelled))]


def nearest_sizes(text: str, vocabulary: Vocabulary) -> list[str]:
    """Return the names of sizes that are nearest to a text."""
    written = "".join(text.lower().split()).removeprefix("standard_")
    near = closest_spellings(written, vocabulary.sizes, MAX_SUGGESTIONS)
    beginnings = [written[:length] for length in range(len(written), 3, -1)]
    matches = (starting_with(beginning, vocabulary.sizes, MAX_SUGGESTIONS) for beginning in beginnings)
    return [vocabulary.sizes[name] for name in near or next(filter(None, matches), ())]

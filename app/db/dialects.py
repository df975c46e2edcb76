"""SQL as text for the two databases: what they spell differently, with equal results.

Parameters are `:name`; a `:` or `%` inside quotes is text. What no dialect is asked for is spelled the same, such as
`as materialized`, `filter (where …)`, `is not distinct from`, `is true`, and casts to `double precision`, `integer`,
`bigint` and `text`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from app.db.functions import DECIMALS, MAX_EXACT_NANO_USD, NANO, SEPARATOR

_NANO = f"cast({NANO} as double precision)"
_MAX_WHOLE_DENOMINATOR, _MAX_WHOLE_NUMERATOR = 8, 10**9
"""Products of nano-dollars with these denominators are below 2**53, which a double holds without rounding."""
_EXACT_INTEGERS = 2**53
"""A double holds every integer up to this one."""


class Step(NamedTuple):
    """A step of `Dialect.adjusted_nano`: where a condition holds, a decimal multiplies what is left, or replaces it."""

    condition: str
    operator: Literal["*", "="]
    value: str


class Dialect(ABC):
    """How one kind of database spells what the two do not spell alike; arguments and results are SQL."""

    name: Literal["sqlite", "postgresql"]
    infinity: str
    """The double above all others."""

    @abstractmethod
    def day(self, parameter: str) -> str:
        """Write a parameter that is a day, given as ISO text."""

    @abstractmethod
    def time(self, parameter: str) -> str:
        """Write a parameter that is a time, given as text in UTC: `2026-09-01 12:00:00.000000`."""

    @abstractmethod
    def json_number(self, number: str) -> str:
        """Write a double as JSON text: `5.0`; `null` for null.

        It has at most 15 significant digits, as prices have: SQLite rounds to 15.
        """

    @abstractmethod
    def json_text(self, value: str) -> str:
        """Write a text, integer or day as JSON text: `"eastus"`, `5`, `"2026-09-01"`; `null` for null."""

    @abstractmethod
    def number_after(self, text: str, number: str) -> str:
        """Write a constant text without a percent sign, and behind it a number that is not null: `"vcpus":5.0`."""

    @abstractmethod
    def exact_ratio(self, usd: str, by: str, of: str) -> str:
        """Write usd * by / of as a double, as `functions.ratio` computes it."""

    @abstractmethod
    def is_true(self, flag: str) -> str:
        """Write the condition that a flag is true, as the partial index of disputed prices has it.

        All others can be written as `is true`.
        """

    @abstractmethod
    def usd_text(self, usd: str) -> str:
        """Write a price in dollars as its shortest decimal text: `0.5`, `12`; null for null."""

    @abstractmethod
    def usd_of(self, nano: str) -> str:
        """Write nano-dollars as dollars: a numeric on PostgreSQL, on SQLite the double nearest to the quotient."""

    @abstractmethod
    def adjusted_nano(self, amount: str, steps: Sequence[Step]) -> str:
        """Write an amount of nano-dollars after steps, exact and rounded once, half away from zero."""

    @abstractmethod
    def has_match(self, text: str, pattern: str) -> str:
        """Write the condition that a text has something that a pattern of `names.word_pattern` matches."""

    @abstractmethod
    def after_last(self, text: str, separator: str) -> str:
        """Write what comes after the last separator (one character) of a text; the whole text without one."""

    @abstractmethod
    def is_among(self, value: str, subquery: str) -> str:
        """Write the condition that a value is in a subquery of one column, which is read first, once.

        PostgreSQL estimates that thousands of sizes match a pattern, of which few do: it then reads all prices in their
        order to look for one of these, where an array has it search the index for each.
        """

    @abstractmethod
    def texts_of(self, parameter: str) -> str:
        """Write a subquery of the texts of a JSON array, which is a parameter: one statement serves any number."""

    def is_listed(self, value: str, parameter: str) -> str:
        """Write the condition that a text is in a JSON array of texts, which is a parameter."""
        return self.is_among(value, self.texts_of(parameter))

    @abstractmethod
    def joined_texts(self, value: str) -> str:
        """Write the values of a group that are not null as texts with SEPARATOR between them, in any order."""

    @abstractmethod
    def parameter_style(self, sql: str) -> str:
        """Return a statement with its parameters as the driver spells them."""


class _Sqlite(Dialect):
    name = "sqlite"
    infinity = "9e999"

    def day(self, parameter: str) -> str:
        return f":{parameter}"

    def time(self, parameter: str) -> str:
        return f":{parameter}"

    def json_number(self, number: str) -> str:
        # `json_quote` writes doubles of 15 digits in some versions and of 17 in others.
        return f"case when {number} is null then 'null' else printf('%!.15g', {number}) end"

    def json_text(self, value: str) -> str:
        return f"json_quote({value})"

    def number_after(self, text: str, number: str) -> str:
        # The text becomes a part of the format, which is faster than to join the two.
        return f"printf({text[:-1]}%!.15g', {number})"

    def exact_ratio(self, usd: str, by: str, of: str) -> str:
        return _exact_ratio(usd, by, of, f"exact_ratio({usd}, {by}, {of})")

    def is_true(self, flag: str) -> str:
        return f"{flag} is 1"

    def usd_text(self, usd: str) -> str:
        return f"usd_text({usd})"

    def usd_of(self, nano: str) -> str:
        # The division of a column is exact, but for integers that SQLite would round first. A call of a Python function
        # takes three times as long.
        if not re.fullmatch(r"[\w.]+", nano):
            return f"usd_of({nano})"
        is_exact = f"{nano} between -{_EXACT_INTEGERS} and {_EXACT_INTEGERS}"
        return f"case when {is_exact} then {nano} / {float(NANO)!r} else usd_of({nano}) end"

    def adjusted_nano(self, amount: str, steps: Sequence[Step]) -> str:
        texts = (f"case when {step.condition} then '{step.operator}{step.value} ' else '' end" for step in steps)
        return f"adjusted_nano({amount}, {' || '.join(texts)})"

    def has_match(self, text: str, pattern: str) -> str:
        return f"(' ' || {text}) glob ('*' || {pattern} || '*')"

    def after_last(self, text: str, separator: str) -> str:
        return f"after_last({text}, {separator})"

    def is_among(self, value: str, subquery: str) -> str:
        return f"{value} in ({subquery})"

    def texts_of(self, parameter: str) -> str:
        return f"select value from json_each(:{parameter})"

    def joined_texts(self, value: str) -> str:
        # The separator is no parameter, which SQLite would copy for each value.
        return f"group_concat({value}, '{SEPARATOR}')"

    def parameter_style(self, sql: str) -> str:
        return sql


class _Postgres(Dialect):
    name = "postgresql"
    infinity = "'infinity'::float8"

    def day(self, parameter: str) -> str:
        return f"cast(:{parameter} as date)"

    def time(self, parameter: str) -> str:
        return f"cast(:{parameter} as timestamp) at time zone 'utc'"

    def json_number(self, number: str) -> str:
        # Doubles come in their shortest form, but whole ones without `.0`.
        return f"coalesce(regexp_replace(to_json({number})::text, '^(-?[0-9]+)$', '\\1.0'), 'null')"

    def json_text(self, value: str) -> str:
        return f"coalesce(to_json({value})::text, 'null')"

    def number_after(self, text: str, number: str) -> str:
        return f"{text} || {self.json_number(number)}"

    def exact_ratio(self, usd: str, by: str, of: str) -> str:
        # Numerics of sufficient scale, of the shortest text of each double.
        dividend, factor, divisor = (f"({part})::text::numeric" for part in (usd, by, of))
        product = f"({dividend} * {factor})::numeric(80, 40)"
        return _exact_ratio(usd, by, of, f"round({product} / nullif({divisor}, 0), {DECIMALS})::double precision")

    def is_true(self, flag: str) -> str:
        return f"{flag} is true"

    def usd_text(self, usd: str) -> str:
        return f"trim_scale(cast({usd} as numeric))::text"  # of 15 digits: as many as a price may have

    def usd_of(self, nano: str) -> str:
        return f"cast({nano} / {NANO}::numeric as numeric(18, {DECIMALS}))"

    def adjusted_nano(self, amount: str, steps: Sequence[Step]) -> str:
        text = f"({amount})::numeric"  # which loses nothing
        for condition, operator, value in steps:
            if operator == "*":
                text = f"{text} * case when {condition} then {value} else 1 end"
            else:
                text = f"(case when {condition} then {value} else {text} end)"
        return f"round({text})::bigint"

    def has_match(self, text: str, pattern: str) -> str:
        return f"(' ' || {text}) ~ {pattern}"

    def after_last(self, text: str, separator: str) -> str:
        return f"reverse(split_part(reverse({text}), {separator}, 1))"

    def is_among(self, value: str, subquery: str) -> str:
        return f"{value} = any(array({subquery}))"

    def texts_of(self, parameter: str) -> str:
        return f"select json_array_elements_text(cast(:{parameter} as json))"

    def joined_texts(self, value: str) -> str:
        return f"string_agg(cast({value} as text), '{SEPARATOR}')"

    def parameter_style(self, sql: str) -> str:
        return _PARAMETER.sub(_to_pyformat, sql)


def _exact_ratio(usd: str, by: str, of: str, other: str) -> str:
    """Compute what `functions.ratio` does with whole numbers in SQL, and all others by `other`.

    A call of a Python function takes several times as long, and so do numerics.
    """
    usd, by, of = f"({usd})", f"({by})", f"({of})"
    nano, whole_by, whole_of = (f"cast({number} as bigint)" for number in (f"round({usd} * {_NANO})", by, of))
    is_whole = (
        f"{usd} >= 0 and {usd} < {MAX_EXACT_NANO_USD!r} and {by} between 1 and {_MAX_WHOLE_DENOMINATOR}"
        f" and {of} between 1 and {_MAX_WHOLE_NUMERATOR} and {nano} / {_NANO} = {usd}"
        f" and {by} = {whole_by} and {of} = {whole_of}"
    )
    quotient = f"(2 * {nano} * {whole_by} + {whole_of}) / (2 * {whole_of}) / {_NANO}"
    return f"case when {is_whole} then {quotient} else {other} end"


_PARAMETER = re.compile(r"'(?:[^']|'')*'|%|::|:(?P<name>[a-z_]\w*)")
"""A quoted text, a percent sign, PostgreSQL's cast, or a parameter."""


def _to_pyformat(match: re.Match[str]) -> str:
    return f"%({match['name']})s" if match["name"] else match[0].replace("%", "%%")


SQLITE, POSTGRES = _Sqlite(), _Postgres()
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (SQLITE, POSTGRES)}


def quote(text: str) -> str:
    """Write a text into a statement."""
    return f"'{text.replace(chr(39), 2 * chr(39))}'"


def quote_all(texts: Iterable[str]) -> str:
    """Write texts into a statement, with commas between them."""
    return ", ".join(map(quote, texts))


def parameters(name: str, count: int) -> list[str]:
    """Write the parameters `:name_0`, `:name_1` and so on."""
    return [f":{name}_{index}" for index in range(count)]


def all_of(*conditions: str) -> str:
    """Join conditions by `and`; without any it holds always."""
    return " and ".join(f"({condition})" for condition in conditions) or "true"


def any_of(*conditions: str) -> str:
    """Join conditions by `or`, in brackets; without any it holds never."""
    return f"({' or '.join(f'({condition})' for condition in conditions)})" if conditions else "false"


def columns_of(table: str, names: Iterable[str]) -> str:
    """Write columns of a table, with commas between them."""
    return ", ".join(f"{table}.{name}" for name in names)

"""The base of request bodies: strict JSON types, helpful errors, and bounded types for their fields."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Annotated, Any, ClassVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, PydanticKnownError, core_schema

from app.catalog.queries.params import other_spellings
from app.fit.formulas.optimizer import LORA_MODULES, RECIPES
from app.fit.formulas.quantization import BITS, KV_BITS, to_dtype
from app.nearest import did_you_mean, nearest, only_bound
from app.validation import MAX_ERRORS

_NUMBER_TYPES = {int, float, Decimal}
_TEXT_TYPES = {str, date}
_EXPECTED = {
    "boolean": "true or false without quotes",
    "number": "a number without quotes",
    "text": "a string in quotes",
}


@cache
def _json_types(annotation: Any) -> frozenset[str]:
    """Return the scalar JSON types that an annotation accepts; empty for lists and objects, which pydantic checks."""
    if get_origin(annotation) is Annotated:  # what annotates a type may be a text: its unit
        return _json_types(get_args(annotation)[0])
    if annotation is bool:
        return frozenset({"boolean"})
    if annotation in _NUMBER_TYPES:
        return frozenset({"number"})
    if annotation in _TEXT_TYPES or isinstance(annotation, str):
        return frozenset({"text"})
    return frozenset[str]().union(*map(_json_types, get_args(annotation)))


@cache
def _most_values(body: "type[In]", name: str) -> int | None:
    """Return how many values the list of a field may have; None without a bound."""
    field = body.model_fields[name]
    return next(_max_lengths(field.annotation, field.metadata), None)


def _max_lengths(annotation: Any, metadata: Iterable[Any]) -> Iterator[int]:
    if get_origin(annotation) is Annotated:
        annotation, *metadata = get_args(annotation)
    if get_origin(annotation) is tuple:
        bounds = (bound for item in metadata for bound in (item, *getattr(item, "metadata", ())))
        yield from (bound.max_length for bound in bounds if hasattr(bound, "max_length"))
    else:  # that of `tuple | None` is the field's
        for part in get_args(annotation):
            yield from _max_lengths(part, metadata)


TEXT_VALUES = "as_text"
"""Key of the validation context under which all values may be strings, as those of command-line options are."""


class In(BaseModel):
    """A body, or an object inside one: an unknown field is rejected with the nearest name.

    Null for a field that may be absent is the same as its absence, also where its default is another value.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    elsewhere: ClassVar[Mapping[str, str]] = {}
    """Names that are no fields here, and the path of the field that is meant."""

    @classmethod
    def allowed_names(cls) -> Collection[str]:
        """Return the names of the fields, in every spelling that they may have."""
        return cls.model_fields

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_fields_and_drop_nulls(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        allowed = cls.allowed_names()
        unknown = [name for name in data if name not in allowed]
        if unknown:
            errors = []
            for name in unknown[:MAX_ERRORS]:
                hint = did_you_mean(_meant_fields(name, cls), sent=name) or only_bound(name, cls.model_fields)
                hint = hint or f"there are {', '.join(cls.model_fields)}"
                missing = PydanticCustomError("unknown_field", "there is no such field; {hint}", {"hint": hint})
                errors.append(InitErrorDetails(type=missing, loc=(name,), input=data[name]))
            more = len(unknown) - len(errors)
            if more:
                several = PydanticCustomError("unknown_field", "there are {times} more such fields", {"times": more})
                errors.append(InitErrorDetails(type=several, loc=(unknown[MAX_ERRORS],), input=None))
            raise ValidationError.from_exception_data(cls.__name__, errors)
        fields = cls.model_fields  # a bound in its other spelling is none of these, and never required
        return {
            name: value
            for name, value in data.items()
            if value is not None or (name in fields and fields[name].is_required())
        }

    @field_validator("*", mode="before")
    @classmethod
    def _check_type(cls, value: Any, info: ValidationInfo) -> Any:
        """Reject a JSON type that pydantic would convert: "8" or true for a number, 1 or "yes" for a boolean.

        A list that is too long is rejected before its values, each of which may be an error that takes long to make.
        """
        if isinstance(value, list) and info.field_name is not None:
            most = _most_values(cls, info.field_name)
            if most is not None and len(value) > most:
                details = {"field_type": "List", "max_length": most, "actual_length": len(value)}
                raise PydanticKnownError("too_long", details)
        text_values = info.context is not None and info.context.get(TEXT_VALUES)
        if isinstance(value, bool | int | float | str) and info.field_name is not None and not text_values:
            error = _wrong_type(value, cls.model_fields[info.field_name].annotation)
            if error is not None:
                raise error
        return value


def _wrong_type(value: Any, annotation: Any) -> PydanticCustomError | None:
    """Return the error of a value whose JSON type is none of those that an annotation accepts."""
    kinds = _json_types(annotation)
    named = ((bool, "boolean"), (str, "text"), (int | float, "number"))  # in this order: a boolean is an int
    kind = next((name for types, name in named if isinstance(value, types)), None)
    if not kinds or kind in kinds:
        return None
    expected = " or ".join(_EXPECTED[allowed] for allowed in sorted(kinds))
    return PydanticCustomError("strict_type", "expected {expected}", {"expected": expected})


def check_json_types(model: type[BaseModel], params: Mapping[str, Any]) -> None:
    """Check the parameters of a query that are given as JSON as those of a body; null is absent, a list has values.

    Raises ValidationError for a value of another JSON type, which the query would convert; unknown names are left out.
    """
    spellings = other_spellings(model)

    def wrong() -> Iterator[InitErrorDetails]:
        for name, given in params.items():
            field = model.model_fields.get(spellings.get(name, name))
            if field is None or given is None:
                continue
            values = (
                {(name, at): item for at, item in enumerate(given)} if isinstance(given, list) else {(name,): given}
            )
            for loc, value in values.items():
                if (error := _wrong_type(value, field.annotation)) is not None:
                    yield InitErrorDetails(type=error, loc=loc, input=value)

    if errors := list(islice(wrong(), MAX_ERRORS)):
        raise ValidationError.from_exception_data(model.__name__, errors)


def _meant_fields(name: str, body: type[In]) -> Collection[str]:
    """Return the fields that a name means: of the body, else of others, as `region` of a fit: `constraints.regions`."""
    if name in body.elsewhere:
        return (body.elsewhere[name],)
    return nearest(name, body.model_fields) or [
        f"{field}.{nested}"
        for field, about in body.model_fields.items()
        for part in _object_types(about.annotation)
        for nested in nearest(name, part.model_fields)
    ]


def _object_types(annotation: Any) -> Iterator[type[In]]:
    if isinstance(annotation, type) and issubclass(annotation, In):
        yield annotation
    for part in get_args(annotation):
        yield from _object_types(part)


def contradiction(detail: str, at: str = "") -> PydanticCustomError:
    """Return the error for fields of an object that contradict each other; `at` is the path of the only wrong one."""
    return PydanticCustomError("contradiction", "{detail}", {"detail": detail, "at": at})


def require_exactly_one(body: In, *names: str) -> None:
    """Raise unless exactly one of the named fields of a body is set."""
    given = [name for name in names if getattr(body, name) is not None]
    if len(given) != 1:
        choices = f"{', '.join(names[:-1])} and {names[-1]}"
        problem = f"{' and '.join(given)} are given" if given else "none is given"
        raise contradiction(f"give exactly one of {choices}; {problem}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """Restricts a string to a set of values; another one is rejected with the nearest."""

    values: Collection[str]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.values)}

    def _check(self, value: str) -> str:
        if value in self.values:
            return value
        details = {"hint": did_you_mean(nearest(value, self.values), " "), "values": ", ".join(self.values)}
        raise PydanticCustomError("unknown_value", "{hint}allowed are {values}", details)


Keyword = Annotated[str, Field(max_length=60)]
Dtype = Annotated[Keyword, AfterValidator(to_dtype), OneOf(tuple(BITS))]
KvDtype = Annotated[Keyword, AfterValidator(lambda name: to_dtype(name, KV_BITS)), OneOf(tuple(KV_BITS))]
RecipeName = Annotated[Keyword, OneOf(tuple(RECIPES))]
Module = Annotated[Keyword, OneOf(LORA_MODULES)]
Modules = Annotated[tuple[Module, ...], Field(max_length=7), AfterValidator(lambda names: tuple(sorted(set(names))))]
"""Sorted and without duplicates, so that equal requests share a cached response."""

Params = Annotated[int, Field(ge=1, le=10**15)]
Width = Annotated[int, Field(ge=1, le=100_000_000)]
Layers = Annotated[int, Field(ge=1, le=10_000)]
Tokens = Annotated[int, Field(ge=1, le=10**9)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Sequences = Annotated[int, Field(ge=1, le=10**9)]
Positive = Annotated[float, Field(ge=1e-9, le=1e18, allow_inf_nan=False)]
Bytes = Annotated[float, Field(ge=1, le=1e18, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
BytesPerParam = Annotated[float, Field(ge=0, le=64, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=1e-9, le=1, allow_inf_nan=False)]
NonNegativeDecimal = Annotated[Decimal, Field(ge=0, le=Decimal("1e12"), allow_inf_nan=False)]

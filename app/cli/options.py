"""Command-line options made from a question's model, so that the API and the command line ask the same things."""

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from app.catalog.queries.params import holds_several
from app.cli.choices import COMPLETED, LISTED, MOST_IN_A_NAME, completing, words_of
from app.errors import BadQuestion
from app.validation import explain, shown

Asked = TypeVar("Asked", bound=BaseModel)
Words = Mapping[str, Callable[[], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Reads:
    """In the annotation of a field: how its option is read from a text."""

    read: Callable[[Any], Any]


def asks(
    *models: type[BaseModel], leave_out: frozenset[str] = frozenset({"fields"}), words: Words | None = None
) -> Callable[[Any], Any]:
    """Give a command one option for each field of one or several models; the command gets them as `given`.

    A list's `fields` are left out, which `--columns` says here. `words` lists what an option takes where its type does
    not say it.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
        fields = {
            name: (field, _heading(model, name)) for model in models for name, field in model.model_fields.items()
        }
        options = [
            _option(name, field, heading, {**LISTED, **(words or {})})
            for name, (field, heading) in fields.items()
            if name not in leave_out
        ]
        signature = inspect.Signature([*own, *options])

        def run(**values: Any) -> Any:
            return command(**values)

        run.__signature__ = signature  # type: ignore[attr-defined]  # what Typer reads the options from
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return run

    return decorate


def _heading(model: type[BaseModel], name: str) -> str | None:
    """The title of the model, among its bases, that brings a field."""
    for base in reversed(model.__mro__):
        if name in getattr(base, "__annotations__", {}) and issubclass(base, BaseModel):
            return _HEADINGS.get(base.__name__)
    return None


_HEADINGS = {
    "SizeScope": "Which sizes",
    "SizeNeeds": "What a VM must have",
    "SizeFilter": "What a VM may have at most",
    "OfferScope": "Whose prices",
    "ModelOptions": "A model and its use",
    "GpuOptions": "GPUs by their figures",
    "Page": "Order and page",
    "SizeList": "Order and page",
}


def question(model: type[Asked], given: dict[str, Any]) -> Asked:
    """Make the question from the options that were given; raises BadQuestion naming the option."""
    try:
        return model(**{name: value for name, value in given.items() if value is not None and value != []})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "question"
        raise BadQuestion(option(name), shown(first.get("input")), explain(first)) from None


def option(name: str) -> str:
    """The option that sets a field."""
    return f"--{name.replace('_', '-')}"


def _option(name: str, field: FieldInfo, heading: str | None, listed: Words) -> inspect.Parameter:
    many = holds_several(field)
    read = _reader(field.annotation)
    kind: Any = list[str] if many else str if read else _plain(field.annotation)
    flag = option(name)
    words = words_of(field.annotation) or (listed[name]() if name in listed else ())
    made = typer.Option(
        f"{flag}/--no-{flag[2:]}" if kind is bool else flag,
        help=_help(field, words),
        show_default=False,
        metavar=None if kind is bool else _metavar(kind, words),
        parser=read,
        rich_help_panel=heading,
        autocompletion=completing(lambda: words, several=many) if words else _of_the_catalog(name, several=many),
    )
    optional: Any = kind if many else kind | None
    annotation: Any = Annotated[optional, made]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _reader(annotation: Any) -> Callable[[Any], Any] | None:
    if isinstance(annotation, Reads):
        return annotation.read
    return next(filter(None, map(_reader, get_args(annotation))), None)


def _of_the_catalog(name: str, *, several: bool) -> Callable[[str], list[str]] | None:
    return completing(COMPLETED[name], several=several) if name in COMPLETED else None


def _help(field: FieldInfo, words: Sequence[str]) -> str:
    text = field.description or ""
    if len(words) > MOST_IN_A_NAME and words[-1] not in text:
        text += f" One of {', '.join(words)}."
    return text + (f" (default: {_spoken(field.default)})" if field.default else "")


def _metavar(kind: Any, words: Sequence[str]) -> str:
    if words:
        return "|".join(words) if len(words) <= MOST_IN_A_NAME else "NAME"
    return {list[str]: "A,B", int: "N"}.get(kind, "VALUE")


def _plain(annotation: Any) -> type:
    """The type that the command line reads; what only the model can check is read as text."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _plain(arguments[0])
    if origin in (Union, types.UnionType):
        return _plain(next(argument for argument in arguments if argument is not type(None)))
    if origin is Literal or annotation in (Decimal, float):
        return str
    return annotation if annotation in (int, bool) else str


def _spoken(default: Any) -> str:
    return ", ".join(default) if isinstance(default, tuple) else str(default)

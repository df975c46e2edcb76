"""Command-line options made from a question's model, so that the API and the command line ask the same things."""

import inspect
import types
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from app.catalog.ask.search import holds_several
from app.errors import BadQuestion
from app.validation import explain, shown

Asked = TypeVar("Asked", bound=BaseModel)


def asks(*models: type[BaseModel], leave_out: frozenset[str] = frozenset()) -> Callable[[Any], Any]:
    """Give a command one option for each field of one or several models; the command gets them as `given`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
        fields = {name: field for model in models for name, field in model.model_fields.items()}
        options = [_option(name, field) for name, field in fields.items() if name not in {*leave_out, "fields"}]
        signature = inspect.Signature([*own, *options])

        def run(**values: Any) -> Any:
            return command(**values)

        run.__signature__ = signature  # type: ignore[attr-defined]  # what Typer reads the options from
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return run

    return decorate


def question(model: type[Asked], given: dict[str, Any]) -> Asked:
    """Make the question from the options that were given; raises BadQuestion naming the option."""
    try:
        return model(**{name: value for name, value in given.items() if value is not None and value != []})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "question"
        raise BadQuestion(f"--{name.replace('_', '-')}", shown(first.get("input")), explain(first)) from None


def _option(name: str, field: FieldInfo) -> inspect.Parameter:
    many = holds_several(field)
    kind: Any = list[str] if many else _plain(field.annotation)
    flag = f"--{name.replace('_', '-')}"
    flags = f"{flag}/--no-{flag[2:]}" if kind is bool else flag
    help_text = (field.description or "") + (f" (default: {_spoken(field.default)})" if field.default else "")
    option = typer.Option(flags, help=help_text, show_default=False)
    optional: Any = kind if many else kind | None
    annotation: Any = Annotated[optional, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


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

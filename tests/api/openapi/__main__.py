"""Regenerate the OpenAPI documents, their examples and the tables of the guide: `make openapi`."""

import logging

from app.settings import PROJECT
from tests.api.openapi.generated_examples import write_examples
from tests.api.openapi.generated_files import GENERATED


def main() -> None:
    logging.disable()  # one of the examples is an internal error
    write_examples()
    for path, text in GENERATED.items():
        path.write_text(text(), encoding="utf-8")
        print(path.relative_to(PROJECT))  # noqa: T201  # lists the files for `make openapi`


main()

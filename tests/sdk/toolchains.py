"""One entry per generator: how a client is generated, compiled and run. docs/clients.md has the same commands."""

import os
from dataclasses import dataclass, field

from tests.sdk.tools import JACKSON

OPENAPI_31, OPENAPI_30 = "openapi.json", "openapi-3.0.json"
"""The document, and its 3.0.3 version for generators that do not read 3.1 well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A generator with the compiler of its language, and the program that uses the generated client."""

    name: str
    package: str
    document: str
    files: tuple[str, ...]
    """Files and folders of programs/ that are copied."""
    needs: tuple[str, ...]
    generate: str
    compile: tuple[str, ...]
    run: str
    environment: dict[str, str] = field(default_factory=dict)
    quick: bool = False
    """Whether it is in every `make test`, beside the released Python client, which test_packages.py builds."""


def _typescript(
    name: str, generate: str, *, tool: str, package: str, document: str = OPENAPI_31, quick: bool = False
) -> Toolchain:
    return Toolchain(
        name=name,
        package=package,
        document=document,
        files=(f"{name}.ts", "round.ts", "tsconfig.json"),
        needs=(tool, "tsc", "node"),
        generate=generate,
        compile=("tsc --project .",),
        run=f"node js/{name}.js",
        quick=quick,
    )


_OG = "openapi-generator-cli generate -i openapi-3.0.json -o client"
_JAVA = (
    "--library native --additional-properties=useJakartaEe=true,openApiNullable=false,useSingleRequestParameter=true"
)

TOOLCHAINS = (
    Toolchain(
        name="openapi-python-client",
        package="openapi-python-client",
        document=OPENAPI_31,
        files=("attrs_program.py", "openapi-python-client.yaml"),
        needs=("openapi-python-client",),
        generate="openapi-python-client generate --path openapi.json --output-path client --meta none --fail-on-warning"
        " --config openapi-python-client.yaml",
        compile=("mypy --config-file= --strict client attrs_program.py",),
        run="python attrs_program.py",
    ),
    _typescript(
        "openapi-fetch",
        "openapi-typescript openapi.json --output client.ts",
        tool="openapi-typescript",
        package="openapi-typescript",
        quick=True,
    ),
    _typescript(
        "hey-api",
        "openapi-ts --input openapi.json --output client --no-log-file",
        tool="openapi-ts",
        package="@hey-api/openapi-ts",
    ),
    _typescript(
        "orval",
        "orval --input openapi.json --output client.ts --client fetch --mode single",
        tool="orval",
        package="orval",
    ),
    _typescript(
        "swagger-typescript-api",
        "swagger-typescript-api generate --path openapi.json --name client.ts --enum-style union --silent",
        tool="swagger-typescript-api",
        package="swagger-typescript-api",
    ),
    _typescript(
        "typescript-fetch",
        f"{_OG} -g typescript-fetch",
        tool="openapi-generator-cli",
        package="openapi-generator-cli",
        document=OPENAPI_30,
    ),
    Toolchain(
        name="python",
        package="openapi-generator-cli",
        document=OPENAPI_30,
        files=("pydantic_program.py",),
        needs=("openapi-generator-cli", "java"),
        generate=f"{_OG} -g python --package-name vmsizes_sdk",
        compile=("mypy --config-file= --strict --follow-imports=silent pydantic_program.py",),
        run="python pydantic_program.py",
        environment={"PYTHONPATH": "client", "MYPYPATH": "client"},
    ),
    Toolchain(
        name="go",
        package="openapi-generator-cli",
        document=OPENAPI_30,
        files=("go",),
        needs=("openapi-generator-cli", "java", "go"),
        generate=f"{_OG} -g go --package-name vmsizes",
        compile=("go -C go build -o ../program .",),
        run="./program",
        environment={"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOFLAGS": "-mod=mod"},
    ),
    Toolchain(
        name="java",
        package="openapi-generator-cli",
        document=OPENAPI_30,
        files=("java",),
        needs=("openapi-generator-cli", "java", "javac"),
        generate=f"{_OG} -g java {_JAVA}",
        compile=("sh -c 'javac -d classes $(find client/src/main java -name \"*.java\")'",),
        run="java Program",
        environment={"CLASSPATH": f"{JACKSON}{os.pathsep}classes"},
    ),
    Toolchain(
        name="ruby",
        package="openapi-generator-cli",
        document=OPENAPI_30,
        files=("program.rb",),
        needs=("openapi-generator-cli", "java", "ruby"),
        generate=f"{_OG} -g ruby --additional-properties=gemName=vmsizes_sdk,library=typhoeus",
        compile=("sh -c 'find client/lib -name \"*.rb\" | xargs -n 50 ruby -wc'",),
        run="ruby program.rb",
    ),
    Toolchain(
        name="php",
        package="openapi-generator-cli",
        document=OPENAPI_30,
        files=("program.php",),
        needs=("openapi-generator-cli", "java", "php"),
        generate=f"{_OG} -g php --invoker-package VmsizesSdk",
        compile=("sh -c 'find client/lib -name \"*.php\" | xargs -n 1 php --syntax-check'",),
        run="php program.php",
    ),
)

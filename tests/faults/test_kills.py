"""A command that writes and is killed leaves the catalog of before or of after, and can be run again."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import SELECTED_KINDS
from tests.faults.kill import Scene, commands, scene_on, try_command

MOMENTS = 10


@pytest.fixture(scope="module", params=SELECTED_KINDS)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene_on(request.param, tmp_path_factory.mktemp("kills")) as scene:
        yield scene


@pytest.mark.slow
@pytest.mark.parametrize("name", [command.name for command in commands(Path())])
def test_a_killed_command_leaves_the_catalog_of_before_or_after(scene: Scene, name: str) -> None:
    command = next(each for each in commands(scene.files) if each.name == name)
    result = try_command(command, MOMENTS, scene, random.Random(1))
    assert result.wrong == []
    assert result.counts["rerun right"] == MOMENTS

"""Bad inputs to every verb of `pfl`: each ends with a coded message, before any long work begins."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest
from click.testing import CliRunner
from torch.nn.modules.module import register_module_forward_pre_hook

from evaluator.errors.codes import ErrorCode
from starter_kit.commands.main import VERBS, app
from starter_kit.console import EXIT_REJECTED
from tests.starter_kit.bad_inputs import data_folders, options, run_files, run_folders, settings, sources
from tests.starter_kit.bad_inputs.case import Bad
from tests.starter_kit.bad_inputs.good_inputs import make_good_inputs

TABLES = (settings, data_folders, sources, run_files, run_folders, options)
CASES: list[Bad] = [case for table in TABLES for case in table.CASES]


class ModelRan(BaseException):
    """Raised where a model begins to train or to answer: nothing of the kit catches it."""


def _end_long_work(*_: object) -> NoReturn:
    raise ModelRan


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory, data: Path, base: Path) -> Path:
    return make_good_inputs(tmp_path_factory.mktemp("good"), data, base)


@pytest.fixture
def no_model_runs() -> Iterator[None]:
    """Any pass through any model ends the test, whether it reads pages, trains or scores."""
    hook = register_module_forward_pre_hook(_end_long_work)
    yield
    hook.remove()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder, removed at once: those of all cases together would be large."""
    with TemporaryDirectory() as name:
        monkeypatch.chdir(name)
        yield Path(name)


def files_in(folder: Path) -> dict[Path, tuple[int, int]]:
    """What is below a folder, with the size and the time of each file."""
    found = {path: path.stat() for path in folder.rglob("*")}
    return {
        path: (status.st_size, status.st_mtime_ns) if path.is_file() else (0, 0)
        for path, status in found.items()
    }


def spoiled(case: Bad, good: Path, folder: Path) -> None:
    """Copy the inputs that the command names, and spoil them."""
    named = {word.partition("/")[0] for word in case.command.split(" ")}
    for path in good.iterdir():
        if path.name in named:
            shutil.copytree(path, folder / path.name)
    case.spoil(folder)


@pytest.mark.usefixtures("no_model_runs")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_it_is_rejected_with_a_code_before_any_model_runs(case: Bad, good: Path, folder: Path) -> None:
    spoiled(case, good, folder)
    before = files_in(folder)
    words = [word for word in case.command.split(" ") if word]
    ended = CliRunner().invoke(app, words, env={"PFL_SITE": None, "PFL_TOKEN": None, "PFL_KEY": None})
    assert isinstance(ended.exception, SystemExit), ended.exception
    assert ended.exit_code == EXIT_REJECTED, ended.output
    _, found, message = ended.stderr.partition(f"{case.code}: ")
    assert found, ended.stderr
    problem = message.partition("\nE_")[0]
    assert ErrorCode(case.code)
    assert case.where in problem.partition("  where: ")[2].partition("\n")[0], ended.stderr
    assert "  next: " in problem
    assert files_in(folder) == before


def test_there_are_as_many_cases_as_the_kit_promises() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 150


def test_every_verb_that_reads_something_has_a_case() -> None:
    assert VERBS.keys() - {case.command.partition(" ")[0] for case in CASES} == {"methods", "version"}

"""`pfl` as a whole: its help, its start, and what every verb does with what it can't use."""

import os
import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from click import Context

from starter_kit import commands
from starter_kit.commands.main import VERBS, app
from tests.starter_kit.commands.pfl import pfl, run_pfl

HEAVY = {
    "dp_accounting",
    "evaluator",
    "flwr",
    "matplotlib",
    "numpy",
    "PIL",
    "pydantic",
    "requests",
    "rich",
    "scipy",
    "torch",
    "transformers",
    "yaml",
}


CALLS = """
import sys
from starter_kit.commands.main import main

for call in sys.stdin.read().splitlines():
    sys.argv[1:] = call.split()
    try:
        main()
    except SystemExit as end:
        print(end.code, *sys.modules, file=sys.stderr)
"""


def loading(calls: Iterable[str], packages: set[str], status: int = 0) -> dict[str, set[str]]:
    """Return which of `packages` calls of `pfl` import, of the calls, one after the other, that import some.

    Each must end with `status`.
    """
    calls = list(calls)
    result = subprocess.run(
        [sys.executable, "-c", CALLS], input="\n".join(calls), capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stderr
    ends = [line.split() for line in result.stderr.splitlines() if " starter_kit.commands.main " in line]
    assert [int(end[0]) for end in ends] == [status] * len(calls), result.stderr
    loaded = {
        call: {name.partition(".")[0] for name in names} & packages
        for call, (_, *names) in zip(calls, ends, strict=True)
    }
    return {call: found for call, found in loaded.items() if found}


def test_help_loads_no_library_that_only_verbs_need() -> None:
    assert loading(["--help"], HEAVY) == {}


def test_without_the_kits_packages_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from starter_kit.commands.main import main"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("E_CONFIGURATION: The starter kit is not installed.")
    assert "Install them with `pip install -c constraints.txt" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_help_of_a_verb_and_the_list_of_methods_load_no_library_that_trains_or_accounts() -> None:
    trains_or_accounts = {"dp_accounting", "flwr", "matplotlib", "numpy", "scipy", "torch", "transformers"}
    assert loading([*(f"{verb} --help" for verb in VERBS), "methods"], trains_or_accounts) == {}


def test_names_of_nothing_are_reported_before_what_trains_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    calls = [
        "train fedavgg --data here --base here --out new",
        "train fedavg --data nowhere --base here --out new",
        "train fedavg --data here --base nowhere --out new",
        "train fedavg --data here --base here --out here",
        "plan fedavgg --data here --base here",
    ]
    assert loading(calls, {"scipy", "torch", "transformers"}, status=2) == {}


def test_submitting_loads_no_library_that_trains() -> None:
    script = "import starter_kit.submitting, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=True).stdout
    assert set(loaded.split()) & {"matplotlib", "scipy", "torch", "transformers"} == set()


def test_help_lists_every_verb_in_full() -> None:
    listed = " ".join(pfl("--help").stdout.split())
    assert all(f" {name} {about}" in listed for name, about in VERBS.items())


@pytest.mark.parametrize("verb", VERBS)
def test_the_table_of_verbs_repeats_their_own_help(verb: str) -> None:
    command = app.get_command(Context(app), verb)
    assert command is not None
    assert command.help is not None
    assert " ".join(command.help.partition("\n\n")[0].split()) == VERBS[verb]


def test_every_module_of_a_verb_is_in_the_table() -> None:
    modules = {
        module.name: import_module(f"{commands.__name__}.{module.name}")
        for module in iter_modules(commands.__path__)
    }
    verbs = {name for name, module in modules.items() if hasattr(module, "app") or hasattr(module, name)}
    assert verbs - {"main"} == set(VERBS)


def test_a_misspelt_verb_is_rejected_with_the_one_that_may_be_meant() -> None:
    rejected = pfl("trian", status=2).stderr
    assert "No such command 'trian'. Did you mean 'train'?" in rejected
    assert "No such command 'x'" in pfl("x", status=2).stderr


def test_without_a_verb_there_is_help() -> None:
    listed = pfl(status=2)
    assert "Commands:" in listed.stdout + listed.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["train", "nobody", "--data", ".", "--base", ".", "--out", "x"], "E_CONFIGURATION"),
        (["train", "fedavg", "--data", "x", "--base", ".", "--out", "x"], "E_DATASET_FORMAT"),
        (["train", "fedavg", "--data", ".", "--base", "x", "--out", "x"], "E_REFERENCE_FORMAT"),
        (["train", "fedavg", "--data", ".", "--base", ".", "--out", "x"], "E_REFERENCE_FORMAT"),
        (
            ["train", "fedavg", "--data", ".", "--base", ".", "--out", "x", "--set", "round=3"],
            "E_CONFIGURATION",
        ),
        (["submit", "x", "--track", "track-1", "--title", "x"], "E_CONFIGURATION"),
        (
            ["submit", "x", "--track", "track-2", "--title", "x", "--publish-proof"],
            "There is no proof to publish.",
        ),
        (["check", "x", "--base", ".", "--track", "track-3"], "E_CONFIGURATION"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_what_cannot_be_done_is_reported_with_a_code(arguments: list[str], code: str, tmp_path: Path) -> None:
    rejected = run_pfl(*arguments, environment={"PATH": ""}, folder=tmp_path)
    assert rejected.returncode == 2
    assert code in rejected.stderr


@pytest.mark.parametrize("folders", [("x", "."), (".", "x")])
def test_a_missing_folder_can_be_downloaded_from_a_known_site(
    folders: tuple[str, str], tmp_path: Path
) -> None:
    data, base = folders
    (tmp_path / "dataset.json").touch()
    command = ["train", "fedavg", "--data", data, "--base", base, "--out", "y"]
    site = {"PATH": "", "PFL_SITE": "https://benchmark.example"}
    download = "`pfl data download --track TRACK`"
    assert download in run_pfl(*command, environment=site, folder=tmp_path).stderr
    assert download not in run_pfl(*command, environment={"PATH": ""}, folder=tmp_path).stderr


def test_the_help_of_a_group_lists_its_verbs_in_full() -> None:
    listed = " ".join(pfl("federate", "--help").stdout.split())
    assert "app Write the kit as a Flower app, for `flwr run` in your own Flower deployment." in listed


def test_version_and_help_are_found_under_their_usual_names() -> None:
    assert pfl("--version").stdout == pfl("version").stdout
    assert pfl("-h").stdout == pfl("--help").stdout


def test_a_shell_completes_verbs_and_what_is_in_them() -> None:
    words = {"COMP_WORDS": "pfl privacy ex", "COMP_CWORD": "2", "_PFL_COMPLETE": "complete_bash"}
    assert run_pfl(environment={**os.environ, **words}).stdout.split() == ["explain"]

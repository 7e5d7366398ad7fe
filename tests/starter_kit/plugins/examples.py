"""The example plug-ins and methods of the documents, found as a participant's own files are."""

from pathlib import Path

from starter_kit.own_files import OwnFile, run_own_file

FOLDER = Path(__file__).parents[3] / "docs" / "examples" / "plugins"
EXAMPLES = sorted(str(path) for path in FOLDER.glob("*.yaml"))


def example(name: str) -> str:
    """The path of an example's config."""
    return str(FOLDER / f"{name}.yaml")


def example_file(name: str) -> OwnFile:
    """The module of an example."""
    return run_own_file(FOLDER / f"{name}.py", again=False)

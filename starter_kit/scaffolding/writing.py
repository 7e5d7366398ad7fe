"""Writing the files of a new method or plug-in under its name."""

import keyword
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.plugin import PluginKind
from starter_kit.reporting.files import write_new_files

TEMPLATES = Path(__file__).parent
# The names of the method and its class in the templates.
NAME, CLASS, PLUGIN = "my_method", "MyMethod", "my_plugin"


def write_method(name: str, folder: Path, *, private: bool) -> list[Path]:
    """Write the files of a method called `name` into `folder`, and return their paths.

    Args:
        private: Write a method with provider-level privacy, and an outline of its proof.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The name can't be that of a Python file; (`E_RUN_FOLDER`) one of the files
            exists already, or can't be written.
    """
    return _write(name, folder, sorted((TEMPLATES / ("private" if private else "public")).glob(f"*{NAME}*")))


def proof_outline(name: str) -> str:
    """Return the outline of the proof that comes with a new private method, in Markdown, for a method called `name`."""
    return _renamed(TEMPLATES / "private" / f"{NAME}_proof.md", name)


def write_plugin(name: str, folder: Path, kind: PluginKind) -> list[Path]:
    """Write the files of a plug-in called `name` into `folder`, and return their paths.

    Raises:
        ProblemError: As `write_method` does.
    """
    return _write(name, folder, sorted((TEMPLATES / kind.folder).glob(f"*{PLUGIN}*")))


def _write(name: str, folder: Path, templates: Sequence[Path]) -> list[Path]:
    _check(name)
    return write_new_files(
        folder, {_renamed_file(template, name): _renamed(template, name) for template in templates}
    )


def _check(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name):
        expected = (
            "lower-case letters, digits, hyphens and underscores, beginning with a letter, such as my_method"
        )
    elif keyword.iskeyword(name):
        expected = "a name that isn't a word of Python itself"
    elif find_spec(name) is not None:
        expected = "a name that no Python package has"
    else:
        return
    raise ProblemError.of(
        ErrorCode.CONFIGURATION,
        message="That name can't be that of a Python file.",
        where="NAME",
        expected=expected,
        found=name,
        next_step="Choose another name.",
    )


def _renamed(template: Path, name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_"))
    text = template.read_text(encoding="utf-8")
    return text.replace(NAME, name).replace(CLASS, words).replace(PLUGIN, name)


def _renamed_file(template: Path, name: str) -> str:
    return template.name.replace(NAME, name).replace(PLUGIN, name)

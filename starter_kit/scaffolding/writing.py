"""Writing the files of a new method under its name."""

import keyword
import re
from importlib.util import find_spec
from pathlib import Path

from evaluator.errors import ErrorCode, ProblemError

TEMPLATES = Path(__file__).parent
# The names of the method and its class in the templates.
NAME, CLASS = "my_method", "MyMethod"


def write_method(name: str, folder: Path, *, private: bool) -> list[Path]:
    """Write the files of a method called `name` into `folder`, and return their paths.

    Args:
        private: Write a method with provider-level privacy, and an outline of its proof.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The name can't be that of a Python file; (`E_RUN_FOLDER`) one of the files
            exists already, or can't be written.
    """
    _check(name)
    templates = sorted((TEMPLATES / ("private" if private else "public")).glob(f"*{NAME}*"))
    files = {folder / template.name.replace(NAME, name): _renamed(template, name) for template in templates}
    for path in files:
        if path.exists():
            raise ProblemError.of(
                ErrorCode.RUN_FOLDER,
                message="A file of that name already exists, and nothing is overwritten.",
                where=str(path),
                next_step="Choose another name, or another folder with --out.",
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ProblemError.of(
            ErrorCode.RUN_FOLDER, where=str(folder), expected="a folder to write into", found=error.strerror
        ) from error
    return list(files)


def _check(name: str) -> None:
    expected = "lower-case letters, digits and underscores, beginning with a letter, such as my_method"
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name) or keyword.iskeyword(name):
        raise _not_a_name(name, expected)
    if find_spec(name) is not None:
        raise _not_a_name(name, "a name that no Python package has")


def _not_a_name(name: str, expected: str) -> Exception:
    return ProblemError.of(
        ErrorCode.CONFIGURATION,
        message="The method's name can't be that of its file.",
        where="NAME",
        expected=expected,
        found=name,
        next_step="Choose another name.",
    )


def _renamed(template: Path, name: str) -> str:
    words = "".join(word.capitalize() for word in name.split("_"))
    return template.read_text(encoding="utf-8").replace(NAME, name).replace(CLASS, words)

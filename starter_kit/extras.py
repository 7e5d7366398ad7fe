"""Libraries that the kit can do without, each in an extra of its own."""

import json
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from types import ModuleType

from evaluator.errors import ErrorCode, ProblemError

PACKAGE = "pfl-docvqa-benchmark"


def import_extra(module: str, extra: str, title: str, *, package: str = "") -> ModuleType:
    """Return a module of an optional library.

    Args:
        extra: The extra that installs it.
        title: What people call the library.
        package: The package that is missing where the module isn't there; by default the module's first part.

    Raises:
        ProblemError: (`E_CONFIGURATION`) It isn't installed; the problem has the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message=f"{title} is not installed.",
            where=title,
            expected=f"the package {package or module.partition('.')[0]}",
            found=error,
            next_step=f"Install it with `{install_command(extra)}`, or leave it out.",
        ) from error


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation: of a clone, or of the wheel."""
    extras = "kit" if extra == "kit" else f"kit,{extra}"
    source = f"-e '.[{extras}]'" if _is_clone() else f'"$(ls pfl_docvqa_benchmark-*.whl)[{extras}]"'
    return f"pip install -c constraints.txt {source}"


def _is_clone() -> bool:
    """Return whether the kit runs from a clone, as an editable installation or without any."""
    try:
        stored = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return True
    return bool(stored and json.loads(stored).get("dir_info", {}).get("editable"))

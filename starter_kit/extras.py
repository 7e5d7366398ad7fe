"""Libraries that the kit can do without, each in an extra of its own."""

import json
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from types import ModuleType
from typing import Any

from evaluator.errors import ErrorCode, ProblemError

PACKAGE = "pfl-docvqa-benchmark"
# The extras that need no other one.
COMPLETE = ("kit", "verify")


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


def kit_missing(message: str, found: object, more: str = "") -> ProblemError:
    """Return the problem (`E_CONFIGURATION`) that the package was installed without the kit.

    Args:
        more: What follows the command that installs it.
    """
    return ProblemError.of(
        ErrorCode.CONFIGURATION,
        message=message,
        where="pfl",
        expected="the packages of the extra `kit`",
        found=found,
        next_step=f"Install them with `{install_command('kit')}`.{more}",
    )


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation: of a clone, of an address, or of a wheel on disk."""
    extras = extra if extra in COMPLETE else f"kit,{extra}"
    origin = _origin()
    if origin is None or origin.get("dir_info", {}).get("editable"):
        return f"pip install -c constraints.txt -e '.[{extras}]'"
    address = origin.get("url", "")
    if address.startswith(("https://", "http://")):
        vcs = origin.get("vcs_info", {}).get("vcs")
        return f'pip install "{PACKAGE}[{extras}] @ {f"{vcs}+" if vcs else ""}{address}"'
    return f'pip install -c constraints.txt "$(ls pfl_docvqa_benchmark-*.whl)[{extras}]"'


def _origin() -> dict[str, Any] | None:
    """Return where the kit was installed from, as pip records it; None if it runs from a clone without installation."""
    try:
        stored = distribution(PACKAGE).read_text("direct_url.json")
    except PackageNotFoundError:
        return None
    found: dict[str, Any] = json.loads(stored or "{}")
    return found

"""Libraries that the kit can do without, each in an extra of its own."""

from importlib import import_module
from types import ModuleType

from evaluator.errors import ErrorCode, ProblemError


def import_extra(module: str, extra: str, title: str) -> ModuleType:
    """Return a module of an optional library.

    Args:
        extra: The extra that installs it.
        title: What people call the library.

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
            expected=f"the package {module.partition('.')[0]}",
            found=error,
            next_step=f"Install it with `pip install -c constraints.txt -e '.[{extra}]'`, or leave it out.",
        ) from error

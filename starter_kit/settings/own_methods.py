"""The participant's own files of a run: that of the method, and those of plug-ins."""

from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any

from evaluator.errors import ErrorCode, ProblemError, shorten
from starter_kit.federation.rounds import Aggregate, ClientUpdate, Method
from starter_kit.own_files import OwnFile, file_of
from starter_kit.plugin import plugins_in
from starter_kit.settings.run_settings import RunSettings


def own_file(settings: type[RunSettings]) -> OwnFile | None:
    """Return the file that defines the class `settings`; None for one of the kit's methods."""
    return file_of(settings)


def own_files(settings: RunSettings) -> list[OwnFile]:
    """Return the files that the settings name, each once.

    Raises:
        ProblemError: (`E_CONFIGURATION`) Two of them have the same name, by which a run stores them.
    """
    files: dict[str, OwnFile] = {}
    for known in (type(settings), *(type(plugin) for _, plugin in plugins_in(settings))):
        if (file := file_of(known)) is None:
            continue
        if files.setdefault(file.path.name, file).sha256 != file.sha256:
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                where=str(file.path),
                expected="files of different names, as a run folder keeps a copy of each",
                found=f"another {file.path.name} in {files[file.path.name].path.parent}",
                next_step="Rename one of them.",
            )
    return list(files.values())


def check_returns(method: Method) -> None:
    """Have the steps of a participant's own method checked: what they return by mistake, such as nothing.

    Otherwise the kit would fail on it later, in its own code.
    """
    known = type(method)
    if (file := file_of(known)) is None:
        return
    for name, (is_right, expected) in RETURNS.items():
        step = vars(known).get(name)
        if isinstance(step, FunctionType) and not hasattr(step, "__wrapped__"):
            setattr(known, name, _checked(step, file, is_right, f"{name} returns {expected}"))


def _are_clients(found: object, clients: Sequence[int], *_: object) -> bool:
    return isinstance(found, list | tuple) and set(found) <= set(clients)


# Step -> whether that is what it returns, given its arguments; and what it is in words.
RETURNS: dict[str, tuple[Callable[..., bool], str]] = {
    "choose_clients": (_are_clients, "a list of some of the clients"),
    "client_update": (lambda found, *_: isinstance(found, ClientUpdate), "a ClientUpdate"),
    "accumulator": (lambda found, *_: hasattr(found, "add") and hasattr(found, "result"), "an Accumulator"),
    "aggregate": (lambda found, *_: isinstance(found, Aggregate), "an Aggregate"),
}


def _checked(
    step: FunctionType, file: OwnFile, is_right: Callable[..., bool], expected: str
) -> Callable[..., Any]:
    @wraps(step)
    def checked(self: Method, *arguments: Any, **named: Any) -> Any:
        found = step(self, *arguments, **named)
        if not is_right(found, *arguments, *named.values()):
            raise ProblemError.of(
                ErrorCode.CONFIGURATION,
                message="Code in a Python file that the settings name doesn't work.",
                where=f"{file.path}, line {step.__code__.co_firstlineno}",
                expected=expected,
                found=shorten(repr(found)),
                next_step="Correct the file; `pfl new` writes files that work, with their tests.",
            )
        return found

    return checked

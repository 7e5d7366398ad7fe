"""A participant's own Python file, with a method or a plug-in: known by its name and its SHA-256.

The file runs with all rights of any program. Its SHA-256 goes into the settings that a run stores, so that another file
of the same name is never mistaken for it; what the file imports from elsewhere is not covered.
"""

import hashlib
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from evaluator.errors import ErrorCode, ProblemError


class OwnFile(ModuleType):
    """The module that a file was run as.

    Attributes:
        path: The path of the file.
        source: The code that was run; `sha256` is its hash.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.source = path.read_bytes()
        self.sha256 = hashlib.sha256(self.source).hexdigest()
        super().__init__(f"pfl_own_{path.stem}_{self.sha256[:16]}")
        self.__file__ = str(self.path)

    def keep(self, folder: Path) -> None:
        """Write the file into `folder`, as it was run."""
        (folder / self.path.name).write_bytes(self.source)


def run_own_file(path: Path, *, again: bool = True) -> OwnFile:
    """Run the Python file `path`.

    Args:
        again: Run it even where this process has run this file with this content.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file can't be read, or it fails.
    """
    module = None
    try:
        module = OwnFile(path)
        known = sys.modules.get(module.__name__)
        if not again and isinstance(known, OwnFile) and known.path == module.path:
            return known
        # Dataclasses and pydantic look their module up.
        sys.modules[module.__name__] = module
        exec(compile(module.source, module.path, "exec"), module.__dict__)  # noqa: S102  (as the user requested)
    except (Exception, SystemExit) as error:
        # Nothing finds a module of which half was run. And a script that calls sys.exit() would otherwise end the
        # command without a message.
        if module is not None:
            sys.modules.pop(module.__name__, None)
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="A Python file that the settings name can't be run.",
            where=place_in(path, error),
            expected="a Python file that runs",
            found=named(error),
            next_step="Correct the file.",
        ) from error
    return module


@contextmanager
def errors_reported() -> Iterator[None]:
    """Inside the block, report an error that a participant's own code raises, or causes in what it calls.

    A file that can't be opened, or a full disk, is none of these: it isn't the code that must be corrected.

    Raises:
        ProblemError: (`E_CONFIGURATION`) There was one.
    """
    try:
        yield
    except (ProblemError, OSError):
        raise
    except (Exception, SystemExit) as error:
        path = _last_own_path(error)
        if path is None:
            raise
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="Code in a Python file that the settings name doesn't work.",
            where=place_in(path, error),
            expected="code that runs",
            found=named(error),
            next_step="Correct the file; `pfl new` writes files that work, with their tests.",
        ) from error


def named(error: BaseException) -> str:
    """Return the kind of an error, with what it says if it says something."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _last_own_path(error: BaseException) -> Path | None:
    """Return the own file whose code was running last when the error was raised."""
    own = {
        str(module.path): module.path for module in list(sys.modules.values()) if isinstance(module, OwnFile)
    }
    names = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return next((own[name] for name in reversed(names) if name in own), None)


def file_of(known: type) -> OwnFile | None:
    """Return the file that defines a class; None for one of the kit's."""
    module = sys.modules.get(known.__module__)
    return module if isinstance(module, OwnFile) else None


def loaded_file(sha256: str) -> OwnFile | None:
    """Return the file of this hash that this process has run, if it has."""
    for module in list(sys.modules.values()):
        if isinstance(module, OwnFile) and module.sha256 == sha256:
            return module
    return None


def place_in(path: Path, error: BaseException) -> str:
    """Return the path, with the last line of it in the traceback of `error` if there is one."""
    inside = str(path.resolve())
    if isinstance(error, SyntaxError) and error.filename == inside:
        return f"{path}, line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == inside]
    return f"{path}, line {lines[-1]}" if lines else str(path)

"""A participant's own method: one Python file, known by its name and its SHA-256.

The file runs with all rights of any program. Its SHA-256 goes into the settings that a run stores, so that another file
of the same name is never mistaken for it; what the file imports from elsewhere is not covered.
"""

import hashlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from evaluator.errors import ErrorCode, ProblemError
from starter_kit.settings.run_settings import RunSettings


class MethodFile(ModuleType):
    """The module that a file was run as.

    Attributes:
        path: The path of the file.
        source: The code that was run; `sha256` is its hash.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.source = path.read_bytes()
        self.sha256 = hashlib.sha256(self.source).hexdigest()
        super().__init__(f"pfl_method_{path.stem}_{self.sha256[:16]}")
        self.__file__ = str(self.path)

    def keep(self, folder: Path) -> None:
        """Write the file into `folder`, as it was run."""
        (folder / self.path.name).write_bytes(self.source)


def run_method_file(path: Path) -> MethodFile:
    """Run the Python file `path`.

    Raises:
        ProblemError: (`E_CONFIGURATION`) The file can't be read, or it fails.
    """
    try:
        module = MethodFile(path)
        # Dataclasses and pydantic look their module up.
        sys.modules[module.__name__] = module
        exec(compile(module.source, module.path, "exec"), module.__dict__)  # noqa: S102  (as the user requested)
    except (Exception, SystemExit) as error:
        # A script that calls sys.exit() would otherwise end the command without a message.
        raise ProblemError.of(
            ErrorCode.CONFIGURATION,
            message="The file of a method can't be run.",
            where=f"{path}, line {line}" if (line := _line(error, path)) else str(path),
            expected="a Python file that runs",
            found=f"{type(error).__name__}: {error}",
            next_step="Correct the file.",
        ) from error
    return module


def own_file(settings: type[RunSettings]) -> MethodFile | None:
    """Return the file that defines the class `settings`; None for one of the kit's methods."""
    module = sys.modules[settings.__module__]
    return module if isinstance(module, MethodFile) else None


def _line(error: BaseException, path: Path) -> int | None:
    """Return the last line of `path` in the traceback of `error`."""
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        return error.lineno
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path.resolve())
    ]
    return lines[-1] if lines else None

"""Functions of the starter kit, run in the workers' sandbox on behalf of the organizers' commands.

The site imports nothing of the kit: what runs is named by module and function, and gets and returns JSON. It needs the
packages of a worker and of the kit beside those of the site.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evaluator.messages.examinations import CodeIdentity
from evaluator.messages.jobs import ArtifactKind, evaluator_version
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import KEPT_VARIABLES, Sandbox, UnconfinedError
from portal.evaluation.examining.run_files import RunFiles

IDENTITY_LIMITS = Limits(wall_s=120, cpu_s=120, memory_bytes=4096 * MIB)


class CannotExamineError(RuntimeError):
    """Nothing can be examined here: the kit isn't installed, the kernel confines nothing, or the kit itself failed."""


class KitSandbox:
    """A sandbox that can read the kit's sources; a context manager. Its processes run one at a time.

    Raises:
        CannotExamineError: The kit isn't installed beside the site, or the kernel would not confine its processes.
    """

    def __init__(self) -> None:
        found = importlib.util.find_spec("starter_kit")
        if found is None or found.origin is None or importlib.util.find_spec("torch") is None:
            raise CannotExamineError(
                "Examinations need the starter kit and torch: install the package with its extras worker and kit."
            )
        self.kit = Path(found.origin).parent
        self._sandbox = Sandbox()

    def __enter__(self) -> Self:
        try:
            self._sandbox.require_confinement()
        except UnconfinedError as error:
            self._sandbox.close()
            raise CannotExamineError(str(error)) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sandbox.close()

    def run(
        self,
        module: str,
        function: str,
        inputs: object,
        *,
        limits: Limits,
        readable: Iterable[Path] = (),
        writable: Iterable[Path] = (),
        on_message: Callable[[Any], None] = lambda _: None,
    ) -> Any:
        """Return what the function returns; see `Sandbox.run`.

        The module is loaded before the process is confined, so it must not load a method file when it is imported.

        Raises:
            SandboxError: It returned nothing.
        """
        return self._sandbox.run(
            module,
            function,
            inputs,
            readable=[self.kit, *readable],
            writable=writable,
            limits=limits,
            on_message=on_message,
        )

    def judge(self, module: str, inputs: object, *, timeout_s: float) -> bytes:
        """Return what a module of the kit writes that examines a method without loading it.

        It runs as `python -m <module> <file to write>` with the inputs as JSON, with the rights of this process and
        without its environment, and confines by itself whatever it doesn't trust.

        Raises:
            CannotExamineError: It wrote nothing.
        """
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        with tempfile.TemporaryDirectory(prefix="judge-") as folder:
            output = Path(folder, "result.json")
            try:
                ended = subprocess.run(
                    [sys.executable, "-m", module, str(output)],
                    input=json.dumps(inputs),
                    env=kept | {"PYTHONPATH": str(self.kit.parent)},
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    timeout=timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise CannotExamineError(f"{module} took more than {timeout_s:g} s") from error
            if ended.returncode != 0 or not output.is_file():
                raise CannotExamineError(f"{module} ended with {ended.returncode}: {ended.stderr[-2000:]}")
            return output.read_bytes()

    def identify(self, files: RunFiles) -> CodeIdentity:
        """Return which code an examination of these files is about. No method file is run for that."""
        record = files.paths.get(ArtifactKind.TRAINING_RECORD)
        found = self.run(
            "starter_kit.runs.code_identity",
            "identify",
            {"settings": str(files.settings), "record": record and str(record)},
            readable=[files.folder, *([record] if record else [])],
            limits=IDENTITY_LIMITS,
        )
        return CodeIdentity(
            kit_version=evaluator_version(),
            code_sha256=found["code_sha256"],
            settings_sha256=files.sha256[ArtifactKind.SETTINGS],
            method_sha256=files.sha256.get(ArtifactKind.METHOD_FILE, ""),
            is_recorded=found["is_recorded"],
        )

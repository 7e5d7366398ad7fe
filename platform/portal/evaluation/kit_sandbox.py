"""Functions of the starter kit, run in the workers' sandbox on behalf of the organizers' commands.

The site imports nothing of the kit: what runs is named by module and function, and gets and returns JSON. It needs the
packages of a worker and of the kit beside those of the site.
"""

import importlib.util
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evaluator.contracts import ArtifactKind, evaluator_version
from evaluator.examinations import CodeIdentity
from evaluator.sandbox.limits import MIB, Limits
from evaluator.sandbox.sandbox import Sandbox
from portal.evaluation.run_files import RunFiles

IDENTITY_LIMITS = Limits(wall_s=120, cpu_s=120, memory_bytes=4096 * MIB)


class KitMissingError(RuntimeError):
    """The starter kit, or what it needs, isn't installed here."""


class KitSandbox:
    """A sandbox that can read the kit's sources; a context manager. Its processes run one at a time.

    Raises:
        KitMissingError: The kit isn't installed beside the site.
    """

    def __init__(self) -> None:
        found = importlib.util.find_spec("starter_kit")
        if found is None or found.origin is None or importlib.util.find_spec("torch") is None:
            raise KitMissingError(
                "Examinations need the starter kit and torch: install the package with its extras worker and kit."
            )
        self.kit = Path(found.origin).parent
        self._sandbox = Sandbox()

    def __enter__(self) -> Self:
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

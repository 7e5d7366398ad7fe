"""A Jupyter kernel in a process forked from one that has loaded what notebooks import: see `forked`."""

from pathlib import Path

from ipykernel.kernelapp import IPKernelApp
from jupyter_client.manager import AsyncKernelManager

from tests.services.forked import Forked


class ForkedKernel(AsyncKernelManager):
    """The manager of a kernel that runs in `folder` from its creation to `end`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(transport="ipc", ip=str(folder / "kernel"))
        self.write_connection_file()
        log = folder / "kernel.log"
        self._process = Forked(
            IPKernelApp.launch_instance,
            ["ipykernel_launcher", "-f", self.connection_file],
            folder=folder,
            stdout=log,
            stderr=log,
        )

    @property
    def has_kernel(self) -> bool:
        """A kernel need not be started."""
        return True

    async def is_alive(self) -> bool:  # type: ignore[override]
        """Return whether the process runs."""
        return self._process.poll() is None

    # What a client calls that waits for longer than a second.
    _async_is_alive = is_alive

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self.cleanup_connection_file()
        self.cleanup_ipc_files()

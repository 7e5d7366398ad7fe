"""Breaking a training run off, as far as a test can."""

from starter_kit.runs.progress import Watcher


class CutError(RuntimeError):
    """The power went."""


class CutOff(Watcher):
    """Ends a run after so many clients' replies."""

    def __init__(self, replies: int) -> None:
        self.left = replies

    def update_arrived(self, round_number: int, arrived: int, chosen: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise CutError

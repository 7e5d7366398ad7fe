"""`make base-weights`: pre-train the tiny VT5 again, and replace the files that ship with the kit."""

from starter_kit.console import print_lines, progress
from starter_kit.weights.tiny_vt5 import FOLDER
from tests.studies.tiny_vt5.origin import make_again
from tests.studies.tiny_vt5.pretraining import PretrainingSettings


def base_weights() -> None:
    """Pre-train the tiny VT5 for four minutes and write its files, their hashes and how they were made."""
    with progress("pre-training, steps") as show:
        origin = make_again(PretrainingSettings(), show)
    print_lines(f"{FOLDER}: a tiny VT5 that answers {origin.accuracy:.0%} of plain questions on public cards")


base_weights()

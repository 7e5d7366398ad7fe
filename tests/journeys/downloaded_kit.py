"""The starter kit as a participant has it: the wheel that the site offers, and `pfl` from nothing but it."""

import os
import sys
from pathlib import Path
from zipfile import ZipFile

from tests.journeys.hands import Hands

# Where `main` finds the kit; an environment variable, as its process is forked from one that runs.
FOLDER = "DOWNLOADED_KIT"
OURS = ("evaluator", "docvqa_site", "starter_kit")


def download_kit(hands: Hands, folder: Path) -> Path:
    """The folder of the unpacked wheel, which the data page offers.

    pip would unpack it likewise, and install what it depends on; `tests/release.py` tries that.
    """
    hands.menu("Data")
    wheel = hands.download(hands.page.get_by_role("link", name="Download Starter kit"), folder)
    with ZipFile(wheel) as packed:
        packed.extractall(folder / "kit")
    return folder / "kit"


def main() -> None:
    """Call the kit's own `main`: what the process has imported of this source is forgotten, libraries are kept."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    kit = os.environ[FOLDER]
    sys.path.insert(0, kit)
    from starter_kit.commands.main import main as kit_main

    foreign = [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in OURS and not str(module.__file__).startswith(kit)
    ]
    assert foreign == []
    kit_main()

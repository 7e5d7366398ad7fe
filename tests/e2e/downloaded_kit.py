"""The starter kit as a participant has it: the wheel that the site offers, and `pfl` from nothing but it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

from playwright.sync_api import Page

from tests.demo.stack import Stack
from tests.starter_kit.commands.pfl import run_pfl

ROOT = Path(__file__).resolve().parents[2]
# Where `main` finds the kit; an environment variable, as its process is forked from one that runs.
FOLDER = "DOWNLOADED_KIT"
OURS = ("evaluator", "portal", "starter_kit")


def offer_kit(stack: Stack, folder: Path) -> None:
    """Build the wheel from this source, and offer it on the site as the organizers do."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    described = ["--kind", "kit", "--title", "Starter kit", "--license", "Apache-2.0"]
    stack.manage("add_download", str(wheel), *described)


def download_kit(page: Page, stack: Stack, folder: Path) -> Path:
    """The folder of the unpacked wheel, which the data page offers.

    pip would unpack it likewise, and install what it depends on; `tests/release.py` tries that.
    """
    page.goto(stack.url)
    page.get_by_role("link", name="Data", exact=True).first.click()
    with page.expect_download() as started:
        page.get_by_role("link", name="Download Starter kit").click()
    wheel = folder / started.value.suggested_filename
    started.value.save_as(wheel)
    with ZipFile(wheel) as packed:
        packed.extractall(folder / "kit")
    return folder / "kit"


def pfl_of(kit: Path, *arguments: object, environment: Mapping[str, str]) -> str:
    """Run a `pfl` command of the downloaded kit in an empty folder, and return what it printed."""
    empty = kit.parent / "empty"
    empty.mkdir(exist_ok=True)
    variables = {**os.environ, **environment, FOLDER: str(kit)}
    ended = run_pfl(*arguments, environment=variables, folder=empty, program=main)
    printed = f"{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == 0, printed
    return printed


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

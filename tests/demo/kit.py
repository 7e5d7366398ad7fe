"""The starter kit as a site offers it: its wheel, and the versions of what it depends on."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]


def build_kit(folder: Path) -> Path:
    """Build the wheel from this source."""
    folder.mkdir(exist_ok=True)
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return Path(wheel)


def offering_kit(folder: Path) -> dict[str, list[str]]:
    """Build the wheel into `folder`; return by name the commands with which organizers offer it."""
    files = {
        "Starter kit": (
            build_kit(folder),
            "The command pfl: it trains, checks, submits and verifies runs.",
        ),
        "Pinned dependencies": (
            ROOT / "constraints.txt",
            "The versions of the kit's dependencies that it was tested with.",
        ),
    }
    described = ("--kind", "kit", "--license", "Apache-2.0")
    return {
        f"download {title}": ["add_download", str(file), "--title", title, "--summary", summary, *described]
        for title, (file, summary) in files.items()
    }

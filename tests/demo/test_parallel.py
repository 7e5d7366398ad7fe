import sys
import time
from pathlib import Path

import pytest

from tests.demo.parallel import Command, CommandError, SideBySide


class Recorded:
    """`SideBySide` in a folder, and the names of the commands that ended."""

    def __init__(self, folder: Path, at_once: int) -> None:
        self.ended: list[str] = []
        self.commands = SideBySide(
            at_once=at_once,
            logs=folder,
            cwd=folder,
            on_end=lambda name, _seconds: self.ended.append(name),
        )

    def run(self, **programs: str) -> None:
        self.commands.run(
            {name: Command([sys.executable, "-c", program], {}) for name, program in programs.items()}
        )


def test_every_command_is_run_and_keeps_its_output_in_a_log(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, at_once=2)
    recorded.run(one="print(1)", two="print(2)", three="print(3)")
    assert sorted(recorded.ended) == ["one", "three", "two"]
    assert [(tmp_path / f"{name}.log").read_text() for name in ("one", "two", "three")] == [
        "1\n",
        "2\n",
        "3\n",
    ]


def test_commands_run_at_the_same_time(tmp_path: Path) -> None:
    meet = (
        "import pathlib, time\n"
        "pathlib.Path({!r}).touch()\n"
        "while not pathlib.Path({!r}).exists(): time.sleep(0.01)"
    )
    Recorded(tmp_path, at_once=2).run(one=meet.format("a", "b"), two=meet.format("b", "a"))


def test_a_failure_is_reported_with_its_output_and_ends_the_others(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, at_once=2)
    begun = time.monotonic()
    with pytest.raises(CommandError, match=r"(?s)bad ended with code 3.*no such thing"):
        recorded.run(
            endless="import time; time.sleep(600)",
            bad="print('no such thing'); raise SystemExit(3)",
            never="import time; time.sleep(600)",
        )
    assert time.monotonic() - begun < 300
    assert recorded.ended == []

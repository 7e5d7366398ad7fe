"""A participant's terminal: it runs the commands that pages show, as they stand there."""

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from starter_kit.commands.main import main
from tests.starter_kit.commands.pfl import Ended, run_pfl

# What installs the kit: `make release` tries that in an environment of its own.
INSTALLING = ("pip", "pipx", "uv", "python", "python3", ".")
ASSIGNMENT = re.compile(r"(\w+)=(.*)", re.DOTALL)
NOTHING = Ended(0, "", "")
# Stands for what somebody has, such as a token.
PLACEHOLDER = "…"


class Terminal:
    """Runs commands in `folder`.

    Args:
        variables: Of the environment, besides the test's own.
        shortened: Words that are added to a command, by its first words after `pfl`.
        program: What `pfl` calls.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        shortened: Mapping[str, tuple[str, ...]] = {},
        program: Callable[[], object] = main,
    ) -> None:
        self.folder = folder
        self.variables = dict(variables)
        self.shortened = shortened
        self.program = program
        folder.mkdir(parents=True, exist_ok=True)

    def in_folder(self, name: str) -> "Terminal":
        """Return a terminal of the same person in another folder."""
        return Terminal(self.folder.parent / name, self.variables, self.shortened, self.program)

    def run(self, shown: str) -> str:
        """Run the commands that a page shows, one after another. Returns all that they printed."""
        ended = [self._run(words) for words in commands(shown)]
        return "\n".join(f"{one.stdout}\n{one.stderr}" for one in ended)

    def output(self, command: str) -> str:
        """Return what a command prints to its standard output alone, as a program reads it."""
        return "".join(self._run(words).stdout for words in commands(command))

    def _run(self, words: list[str]) -> Ended:
        assigned: dict[str, str] = {}
        while words and (found := ASSIGNMENT.fullmatch(words[0])):
            assigned |= {} if found[2] == PLACEHOLDER else {found[1]: found[2]}
            words = words[1:]
        if not words or words[0] in INSTALLING:
            return NOTHING
        if words[0] == "export":
            given = [word for word in words[1:] if PLACEHOLDER not in word]
            self.variables |= dict(os.path.expandvars(word).split("=", 1) for word in given)
            return NOTHING
        assert words[0] == "pfl", f"not a command of the starter kit: {shlex.join(words)}"
        begun = f"{shlex.join(words)} "
        added = [
            word
            for verb in self.shortened
            if begun.startswith(f"pfl {verb} ")
            for word in self.shortened[verb]
        ]
        environment = {**os.environ, **self.variables, **assigned}
        ended = run_pfl(*words[1:], *added, environment=environment, folder=self.folder, program=self.program)
        assert ended.returncode == 0, f"{shlex.join(words)}\n{ended.stdout}\n{ended.stderr}"
        return ended


def commands(shown: str) -> Iterator[list[str]]:
    """Yield the words of each command, without comments."""
    for line in shown.replace("\\\n", " ").splitlines():
        for command in line.split("&&"):
            if words := shlex.split(command, comments=True):
                yield words

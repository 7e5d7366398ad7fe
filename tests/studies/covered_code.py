"""The code that a count covers. Once that changes, the count is one by earlier code.

Sentences don't count, such as the title of a check or what it found, since no count depends on how a result is worded.
"""

import ast
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from starter_kit.runs.executed_code import code_sha256
from starter_kit.settings.configuration import load_settings

METHODS = "starter_kit.methods."
# Two words with a space in between, and perhaps a mark.
SENTENCE = re.compile(r"\w\W? \w")


def covered_sha256(patterns: Iterable[str], config: str, changes: Sequence[str] = ()) -> str:
    """Return the hash of the files that match, the method of a config, and its settings with `changes`.

    The seed is left out, as noise, coins and data are new in every trial, and so is what a step computes in, which is
    float32 on a CPU.
    """
    settings = load_settings(config, changes)
    modules = [kind.__module__ for kind in type(settings).__mro__]
    files = [f"{name.replace('.', '/')}.py" for name in modules if name.startswith(METHODS)]
    more = settings.model_dump_json(exclude={"seed", "compute"})
    return code_sha256([*patterns, *files], more, read=read_without_sentences)


def read_without_sentences(file: Path) -> str:
    """Return the source of a file with nothing in place of each sentence."""
    return without_sentences(file.read_text(encoding="utf-8"))


@cache
def without_sentences(source: str) -> str:
    """Return the source of a module with nothing in place of each sentence, formatted values included."""
    return ast.unparse(_Sentences().visit(ast.parse(source)))


class _Sentences(ast.NodeTransformer):
    """Empties strings of several words."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        is_sentence = isinstance(node.value, str) and SENTENCE.search(node.value)
        return ast.Constant("") if is_sentence else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Constant | ast.JoinedStr:
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        return ast.Constant("") if SENTENCE.search(text) else node

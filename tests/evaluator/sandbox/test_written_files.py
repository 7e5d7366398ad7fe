"""What an untrusted process left in place of a file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.sandbox.written_files import is_own_file

LEFT: dict[str, Callable[[Path, Path], object]] = {
    "a symbolic link": lambda path, secret: path.symlink_to(secret),
    "a link to nothing": lambda path, secret: path.symlink_to(secret.with_name("nowhere")),
    "a hard link": lambda path, secret: path.hardlink_to(secret),
    "a folder": lambda path, _: path.mkdir(),
    "nothing": lambda *_: None,
}


@pytest.mark.parametrize("kind", LEFT)
def test_what_leads_elsewhere_is_no_file_of_the_process(tmp_path: Path, kind: str) -> None:
    secret, path = tmp_path / "secret", tmp_path / "vectors.f32"
    secret.write_text("the first download")
    LEFT[kind](path, secret)
    assert not is_own_file(path)


def test_a_file_of_the_process_is_one(tmp_path: Path) -> None:
    path = tmp_path / "vectors.f32"
    path.write_bytes(b"1234")
    assert is_own_file(path)

"""Every private method has a proof with all its parts, read against the code as it is, or says that it is stale."""

import re
from pathlib import Path

import pytest

from tests.proofs import FOLDER, ROOT, moved, read_proof, renewed

PROOFS = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
PARTS = [
    "Unit", "Adjacency", "Adversary", "Sensitivity", "Noise", "Sampling", "Composition", "Numerics",
]  # fmt: skip
# A check has a proof, too; its parts are its own.
PARTS_OF = {"whole-change": ["Statement", "Assumptions", "Proof", "Numerics"]}
IMPORTS_DP = re.compile(
    r"^\s*(from|import) starter_kit\.dp\b|^\s*from starter_kit import .*\bdp\b", re.MULTILINE
)

proof = pytest.mark.parametrize("path", PROOFS, ids=lambda path: path.stem)


@proof
def test_a_current_proof_was_read_against_the_files_as_they_are(path: Path) -> None:
    front, _ = read_proof(path.read_text())
    assert front.status == "stale" or moved(front, root=ROOT) == [], (
        "read the proof against these files, then renew it or mark it stale: docs/kit-proofs.md"
    )


@proof
def test_a_proof_has_all_its_parts_in_order(path: Path) -> None:
    headings = re.findall(r"^## (.+)$", read_proof(path.read_text())[1], re.MULTILINE)
    parts = PARTS_OF.get(path.stem, PARTS)
    assert [heading for heading in headings if heading in parts] == parts


@proof
def test_a_proof_is_named_after_its_method(path: Path) -> None:
    assert read_proof(path.read_text())[0].method == path.stem


def test_every_private_method_is_covered_by_a_proof() -> None:
    methods = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "starter_kit" / "methods").glob("*.py")
        if IMPORTS_DP.search(path.read_text())
    }
    assert methods
    assert methods <= {name for path in PROOFS for name in read_proof(path.read_text())[0].covers}


FRONT = "---\nmethod: m\nstatus: stale\ncommit: {0}\ncovers:\n  a.py: {1}\n  folder/b.py: {1}\n---\n".format(
    "a" * 40, "b" * 64
)
MARKDOWN = "\n# A proof\n\n---\n\nText.\n"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a.py").write_text("one\n")
    (tmp_path / "folder" / "b.py").write_text("two\n")
    return tmp_path


def test_a_renewed_proof_is_current_until_a_file_changes(code: Path) -> None:
    assert moved(read_proof(FRONT)[0], root=code) == ["a.py", "folder/b.py"]
    text = renewed(FRONT + MARKDOWN, root=code, commit="b" * 40)
    front, markdown = read_proof(text)
    assert (front.method, front.status, front.commit) == ("m", "current", "b" * 40)
    assert markdown == MARKDOWN
    assert moved(front, root=code) == []
    assert renewed(text, root=code, commit="b" * 40) == text
    (code / "a.py").write_text("# Because.\none\n")
    assert moved(front, root=code) == []
    (code / "a.py").write_text("One\n")
    assert moved(front, root=code) == ["a.py"]
    (code / "folder" / "b.py").unlink()
    assert moved(front, root=code) == ["a.py", "folder/b.py"]


@pytest.mark.parametrize(
    "text",
    [
        MARKDOWN,
        FRONT.replace("stale", "fresh"),
        FRONT.replace("covers", "cover"),
        FRONT.replace("b" * 64, "b" * 40),
        FRONT[:-4],
    ],
)
def test_other_front_matter_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"front matter|FrontMatter"):
        read_proof(text)

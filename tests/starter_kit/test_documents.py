from pathlib import Path

import pytest

from starter_kit import documents
from starter_kit.documents import with_addresses
from tests.starter_kit.commands.pfl import failing, passing
from tests.starter_kit.test_extras import installed

TEXT = "Compare it with docs/data.md, or see https://x.example/docs/data.md and my/docs/data.md."


def named(text: str) -> str:
    return TEXT.replace("with docs/data.md", f"with {text}")


def test_a_document_is_named_by_where_it_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PFL_SITE", raising=False)
    assert with_addresses(TEXT) == TEXT
    # As a wheel is installed.
    monkeypatch.setattr(documents, "CHECKOUT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    installed(tmp_path, None)
    assert with_addresses(TEXT) == named("/docs/data/ on the benchmark's site")
    (stored,) = tmp_path.glob("*/METADATA")
    stored.write_text(f"{stored.read_text()}Project-URL: Documentation, https://code.example/tree/v1/docs\n")
    assert with_addresses(TEXT) == named("https://code.example/tree/v1/docs/data.md")
    monkeypatch.setenv("PFL_SITE", "https://site.example/")
    assert with_addresses(TEXT) == named("https://site.example/docs/data/")


def test_errors_results_and_help_name_the_page_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PFL_SITE", "https://site.example")
    (tmp_path / "empty").mkdir()
    assert "https://site.example/docs/data/" in failing("data", "inspect", tmp_path / "empty")
    assert "What it computes: https://site.example/docs/methods/;" in passing("methods")
    assert "https://site.example/docs/settings/" in "".join(passing("train", "--help").split())

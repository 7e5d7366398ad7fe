import pytest

from evaluator.messages.untrusted_text import decode


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_text_is_the_same_whatever_editor_wrote_it(encoding: str, ending: str) -> None:
    assert decode(ending.join(["ε = 1", "δ = 1e-5", ""]).encode(encoding)) == "ε = 1\nδ = 1e-5\n"


@pytest.mark.parametrize("content", [b"caf\xe9", b"\xff\xfea"])
def test_other_encodings_are_rejected_rather_than_guessed(content: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        decode(content)

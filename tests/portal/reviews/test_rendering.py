import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.errors import ErrorCode, ProblemError
from portal.reviews import rendering
from portal.reviews.rendering import render_proof

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels").decode()
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&#58;alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    "<svg onload=alert(1)>",
    "<iframe src='https://example.org'></iframe>",
    "<style>body{background:url(https://example.org)}</style>",
    "<form action='https://example.org'><input name=password></form>",
    "<a href='https://example.org' onclick='alert(1)'>x</a>",
    "</code></pre><script>alert(1)</script>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "![tracked](https://example.org/pixel.png)",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)>",
]
# What a browser would act on; written-out text of these is escaped and has no "<" before it.
ACTIVE = ["<script", "<img", "<svg", "<iframe", "<style", "<form", "<meta", "<math", "<input"]
ACTIVE += ['href="javascript', 'href="JaVa', 'href="data', "<a href='", "<object", "<base"]


def notebook(*cells, **fields):
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells, **fields}).encode()


def code(source="", *outputs):
    return {"cell_type": "code", "source": source, "metadata": {}, "execution_count": 1, "outputs": outputs}


def display(**data):
    return {"output_type": "display_data", "metadata": {}, "data": data}


def problem_of(content, filename):
    with pytest.raises(ProblemError) as caught:
        render_proof(content, filename)
    return caught.value.problem


def assert_harmless(html):
    assert [mark for mark in ACTIVE if mark.lower() in html.lower()] == []


class TestMarkdown:
    def test_it_is_rendered(self):
        html = render_proof(b"# Proof\n\n| a | b |\n|---|---|\n| 1 | *2* |", "proof.md")
        assert "<h1>Proof</h1>" in html
        assert "<em>2</em>" in html

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_an_attack_does_nothing(self, attack):
        assert_harmless(render_proof(attack.encode(), "proof.md"))

    def test_text_that_is_not_utf_8_is_a_problem(self):
        problem = problem_of(b"ok \xff", "proof.md")
        assert (problem.code, problem.where) == (ErrorCode.PROOF_FORMAT, "proof.md, byte 3")

    def test_a_huge_file_is_a_problem(self):
        assert problem_of(b"x" * (rendering.MAX_PROOF_BYTES + 1), "proof.md").code == ErrorCode.ARTIFACT_SIZE
        assert (
            problem_of(b"x" * (rendering.MAX_TEXT_CHARACTERS + 1), "proof.md").code == ErrorCode.PROOF_FORMAT
        )

    def test_front_matter_is_folded_away_and_escaped(self):
        html = render_proof(b"---\nhash: <b>1</b>\n---\n# Proof of $\\varepsilon$\n", "proof.md")
        assert html.startswith("<details><summary>Front matter</summary>")
        assert "hash: &lt;b&gt;1&lt;/b&gt;" in html
        assert "<h1>Proof of <math><mi>ε</mi></math></h1>" in html

    @pytest.mark.parametrize(
        "unit", ["[", "*", "> ", "`", "![", "<", "_*", "- ", "|", "\n", "[a](", "&", "$a ", "$$\n"]
    )
    def test_pathological_markdown_takes_seconds_at_most(self, unit):
        started = time.process_time()
        render_proof(
            (unit * rendering.MAX_TEXT_CHARACTERS)[: rendering.MAX_TEXT_CHARACTERS].encode(), "proof.md"
        )
        assert time.process_time() - started < 10


class TestNotebook:
    def test_cells_and_their_outputs_are_shown_in_order(self):
        stream = {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}
        error = {"output_type": "error", "ename": "ValueError", "evalue": "<no>", "traceback": ["\x1b[31m"]}
        html = render_proof(
            notebook(
                {"cell_type": "markdown", "source": ["# Pro", "of"], "metadata": {}},
                code("print(1 < 2)", stream, display(**{"text/plain": "4.2"}), error),
            ),
            "proof.ipynb",
        )
        parts = ["<h1>Proof</h1>", "print(1 &lt; 2)", "1\n2\n", "4.2", "ValueError: &lt;no&gt;"]
        places = [html.index(part) for part in parts]
        assert places == sorted(places)

    def test_a_png_is_shown_in_place(self):
        html = render_proof(notebook(code("plot()", display(**{"image/png": PNG + "\n"}))), "proof.ipynb")
        assert f'<img src="data:image/png;base64,{PNG}" alt="Output of proof.ipynb, cell 1">' in html

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_an_attack_does_nothing_wherever_it_is(self, attack):
        stream = {"output_type": "stream", "name": "stdout", "text": attack}
        error = {"output_type": "error", "ename": attack, "evalue": attack, "traceback": [attack]}
        html = render_proof(
            notebook(
                {"cell_type": "markdown", "source": attack, "metadata": {}},
                {"cell_type": "raw", "source": attack, "metadata": {}},
                code(attack, stream, display(**{"text/plain": attack}), error),
                metadata={"title": attack},
            ),
            "proof.ipynb",
        )
        assert_harmless(html)

    @pytest.mark.parametrize(
        "kind",
        [
            "text/html",
            "image/svg+xml",
            "application/javascript",
            "text/latex",
            "application/vnd.widget+json",
        ],
    )
    def test_outputs_of_other_kinds_are_dropped(self, kind):
        html = render_proof(notebook(code("", display(**{kind: "<b>UNWANTED</b>"}))), "proof.ipynb")
        assert "UNWANTED" not in html

    @pytest.mark.parametrize(
        "image", ["%%%", base64.b64encode(b"<svg onload=alert(1)>").decode(), 'x" onerror="alert(1)', "é"]
    )
    def test_an_image_that_is_no_png_is_a_problem(self, image):
        problem = problem_of(notebook(code(), code("", display(**{"image/png": image}))), "proof.ipynb")
        assert (problem.code, problem.where) == (ErrorCode.PROOF_FORMAT, "proof.ipynb, cell 2")

    def test_a_huge_image_is_a_problem(self, monkeypatch):
        monkeypatch.setattr(rendering, "MAX_IMAGE_BYTES", 10)
        assert problem_of(notebook(code("", display(**{"image/png": PNG}))), "p.ipynb").found == "14 bytes"

    def test_a_huge_cell_is_a_problem(self):
        cell = code("x" * (rendering.MAX_TEXT_CHARACTERS + 1))
        assert problem_of(notebook(cell), "proof.ipynb").where == "proof.ipynb, cell 1"

    def test_too_many_cells_are_a_problem(self):
        problem = problem_of(notebook(*[code()] * (rendering.MAX_CELLS + 1)), "proof.ipynb")
        assert problem.code == ErrorCode.PROOF_FORMAT

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff\xfe",
            b"[" * 1_000_000,
            b'{"nbformat": 3, "worksheets": []}',
            b'{"nbformat": 4, "cells": 5}',
            b'{"nbformat": 4, "cells": [{"cell_type": "html", "source": "x"}]}',
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": {"a": 1}}]}',
            b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\\ud800"}]}',
        ],
    )
    def test_what_is_no_notebook_is_a_problem_with_its_code(self, content):
        assert problem_of(content, "proof.ipynb").code == ErrorCode.PROOF_FORMAT

    @given(
        st.binary(max_size=300)
        | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps)
    )
    def test_nothing_but_a_problem_ever_comes_out_of_garbage(self, content):
        raw = content if isinstance(content, bytes) else content.encode()
        assert problem_of(raw, "proof.ipynb").code == ErrorCode.PROOF_FORMAT

    @given(st.lists(st.text(max_size=60)))
    def test_text_of_code_cells_is_never_markup(self, sources):
        html = render_proof(notebook(*map(code, sources)), "proof.ipynb")
        stripped = html.replace('<pre class="proof-code"><code>', "").replace("</code></pre>", "")
        assert "<" not in stripped


@pytest.mark.parametrize("filename", ["proof.html", "proof", "proof.docx", "proof.md.exe"])
def test_other_files_are_a_problem(filename):
    assert problem_of(b"<script>alert(1)</script>", filename).code == ErrorCode.PROOF_FORMAT

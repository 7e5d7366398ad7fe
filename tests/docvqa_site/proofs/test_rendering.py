import base64
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docvqa_site.proofs import notebooks, pictures, rendering
from docvqa_site.proofs.reading import MAX_PROOF_BYTES
from docvqa_site.proofs.rendering import render_proof
from docvqa_site.proofs.unshown import summary
from evaluator.errors import ErrorCode, ProblemError

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


def html_of(content, filename):
    return render_proof(content, filename).html


def problem_of(content, filename):
    with pytest.raises(ProblemError) as caught:
        html_of(content, filename)
    return caught.value.problem


def assert_harmless(html):
    assert [mark for mark in ACTIVE if mark.lower() in html.lower()] == []


class TestMarkdown:
    def test_it_is_rendered(self):
        html = html_of(b"# Proof\n\n| a | b |\n|---|---|\n| 1 | *2* |", "proof.md")
        assert '<h2 id="proof-proof">Proof</h2>' in html
        assert "<em>2</em>" in html
        assert 'role="region" aria-label="Table 1, Proof" tabindex="0"><table class="table">' in html

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_an_attack_does_nothing(self, attack):
        assert_harmless(html_of(attack.encode(), "proof.md"))

    def test_text_that_is_not_utf_8_is_a_problem(self):
        problem = problem_of(b"ok \xff", "proof.md")
        assert (problem.code, problem.where) == (ErrorCode.PROOF_FORMAT, "proof.md, byte 3")

    def test_a_huge_file_is_a_problem(self):
        too_large = problem_of(b"x" * (MAX_PROOF_BYTES + 1), "proof.md")
        assert too_large.code == ErrorCode.ARTIFACT_SIZE
        assert too_large.message == "The proof is too large to be shown here."
        assert (
            problem_of(b"x" * (rendering.MAX_TEXT_CHARACTERS + 1), "proof.md").code == ErrorCode.PROOF_FORMAT
        )

    def test_front_matter_is_folded_away_and_escaped(self):
        html = html_of(b"---\nhash: <b>1</b>\n---\n# Proof of $\\varepsilon$\n", "proof.md")
        assert html.startswith(
            '<details class="proof-front-matter"><summary>Front matter (1 entry)</summary>'
        )
        assert '<th scope="row">hash</th><td>&lt;b&gt;1&lt;/b&gt;</td>' in html
        assert "Proof of <math><mi>ε</mi></math></h2>" in html

    def test_front_matter_shortens_hashes_and_leaves_out_what_says_nothing(self):
        front = f"# a comment\nmethod: fl\ncode:\n  a/b.py: {'0123456789abcdef' * 4}\nnote\n"
        html = html_of(f"---\n{front}---\n# Proof\n".encode(), "proof.md")
        rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', html)
        assert rows == [("method", "fl"), ("a/b.py", "0123456789ab…"), ("", "note")]

    def test_headings_are_listed_and_linked_to(self):
        html = html_of(b"# Claim\n## Noise\n## Noise\n### At $\\sigma$\n[see](#noise-1)", "proof.md")
        listed = re.findall(r'<li class="level-(\d)"><a href="#(.*?)">(.*?)</a></li>', html)
        assert listed == [
            ("2", "proof-claim", "Claim"),
            ("3", "proof-noise", "Noise"),
            ("3", "proof-noise-1", "Noise"),
            ("4", "proof-at-sigma", "At <math><mi>σ</mi></math>"),
        ]
        assert '<h3 id="proof-noise-1">Noise</h3>' in html
        assert 'href="#proof-noise-1"' in html.partition("</details>")[2]

    def test_a_short_proof_has_no_contents(self):
        assert "Contents" not in html_of(b"# Proof\n## Noise\n", "proof.md")

    @pytest.mark.parametrize(
        "target", ["src/train.py", "/admin/", "../x.md#a", "//example.org/x", "attachment:a.png"]
    )
    def test_a_link_that_leads_nowhere_is_text_that_says_so(self, target):
        html = html_of(f"[the *code*]({target}) and ![plot]({target})".encode(), "proof.md")
        assert "<a " not in html
        assert f"the <em>code</em> ({target}, not part of the proof)" in html
        assert f"Image: plot ({target}, not part of the proof)" in html

    def test_a_link_to_another_site_opens_beside_the_frame(self):
        html = html_of(b"[paper](https://example.org/paper)", "proof.md")
        assert (
            '<a href="https://example.org/paper" target="_blank" rel="nofollow noopener noreferrer">' in html
        )

    @pytest.mark.parametrize(
        "unit", ["[", "*", "> ", "`", "![", "<", "_*", "- ", "|", "\n", "[a](", "&", "$a ", "$$\n"]
    )
    def test_pathological_markdown_takes_seconds_at_most(self, unit):
        started = time.process_time()
        html_of((unit * rendering.MAX_TEXT_CHARACTERS)[: rendering.MAX_TEXT_CHARACTERS].encode(), "proof.md")
        assert time.process_time() - started < 10


class TestNotebook:
    def test_cells_and_their_outputs_are_shown_in_order(self):
        stream = {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}
        error = {"output_type": "error", "ename": "ValueError", "evalue": "<no>", "traceback": ["\x1b[31m"]}
        html = html_of(
            notebook(
                {"cell_type": "markdown", "source": ["# Pro", "of"], "metadata": {}},
                code("print(1 < 2)", stream, display(**{"text/plain": "4.2"}), error),
            ),
            "proof.ipynb",
        )
        parts = [
            '<h2 id="proof-proof">Proof</h2>',
            "Code [1]",
            "print(1 &lt; 2)",
            "1\n2\n",
            "4.2",
            "ValueError: &lt;no&gt;",
        ]
        places = [html.index(part) for part in parts]
        assert places == sorted(places)

    def test_a_png_is_shown_in_place(self):
        html = html_of(notebook(code("plot()", display(**{"image/png": PNG + "\n"}))), "proof.ipynb")
        assert (
            f'<img src="data:image/png;base64,{PNG}" alt="Picture in the output of proof.ipynb, cell 1">'
            in html
        )

    @pytest.mark.parametrize("attack", ATTACKS)
    def test_an_attack_does_nothing_wherever_it_is(self, attack):
        stream = {"output_type": "stream", "name": "stdout", "text": attack}
        error = {"output_type": "error", "ename": attack, "evalue": attack, "traceback": [attack]}
        html = html_of(
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
        ["text/html", "application/javascript", "application/vnd.widget+json"],
    )
    def test_outputs_of_other_kinds_are_dropped_and_counted(self, kind):
        proof = render_proof(notebook(code("", display(**{kind: "<b>UNWANTED</b>"}))), "proof.ipynb")
        assert "UNWANTED" not in proof.html
        assert f"An output of the type {kind} is not shown." in proof.html
        assert proof.html.startswith('<details class="notice notice-info proof-unshown">')
        assert summary(proof.unshown) == "1 output"

    @pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/svg+xml", "image/gif"])
    @pytest.mark.parametrize(
        "image", ["%%%", base64.b64encode(b"<svg onload=alert(1)>").decode()[1:], 'x" onerror="alert(1)', "é"]
    )
    def test_what_is_not_the_stated_kind_of_picture_is_not_shown(self, kind, image):
        proof = render_proof(notebook(code(), code("", display(**{kind: image}))), "proof.ipynb")
        assert "<img" not in proof.html
        assert [(part.kind, part.cell) for part in proof.unshown] == [("picture", 2)]

    def test_the_size_of_a_png_keeps_its_place(self):
        header = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (640).to_bytes(4) + (480).to_bytes(4)
        image = base64.b64encode(header).decode()
        html = html_of(notebook(code("", display(**{"image/png": image}))), "proof.ipynb")
        assert 'width="640" height="480"' in html

    def test_the_cells_share_one_list_of_contents_and_their_headings_keep_their_levels(self):
        cells: list[dict] = [
            {"cell_type": "markdown", "source": text, "metadata": {}} for text in ("# A", "## B", "# A")
        ]
        html = html_of(notebook(*cells), "proof.ipynb")
        assert re.findall(r'<h\d id="[\w-]+">', html) == [
            '<h2 id="proof-a">', '<h3 id="proof-b">', '<h2 id="proof-a-1">',
        ]  # fmt: skip
        assert html.index('href="#proof-a-1"') < html.index('<h2 id="proof-a">')

    def test_colors_of_a_terminal_are_left_out(self):
        stream = {"output_type": "stream", "name": "stdout", "text": "\x1b[31mred\x1b[0m"}
        assert "<code>red</code>" in html_of(notebook(code("x", stream)), "proof.ipynb")

    def test_a_huge_image_is_not_shown(self, monkeypatch):
        monkeypatch.setattr(pictures, "MAX_IMAGE_BYTES", 10)
        proof = render_proof(notebook(code("", display(**{"image/png": PNG}))), "p.ipynb")
        assert "it has 14 bytes, more than 10" in proof.html

    def test_of_a_long_output_or_cell_the_beginning_and_the_end_are_shown(self):
        long = "begin" + "x" * rendering.MAX_TEXT_CHARACTERS + "end"
        stream = {"output_type": "stream", "name": "stdout", "text": long}
        proof = render_proof(notebook(code(long, stream)), "proof.ipynb")
        assert proof.html.count("begin") == proof.html.count("end</code>") == 2
        assert "80,008 characters are left out here." in proof.html
        assert summary(proof.unshown) == "2 outputs"

    def test_too_many_cells_are_a_problem(self):
        problem = problem_of(notebook(*[code()] * (notebooks.MAX_CELLS + 1)), "proof.ipynb")
        assert problem.code == ErrorCode.PROOF_FORMAT

    def test_too_many_outputs_are_a_problem(self):
        outputs = [display(**{"text/plain": "."})] * (notebooks.MAX_OUTPUTS // 2 + 1)
        problem = problem_of(notebook(code("", *outputs), code("", *outputs)), "proof.ipynb")
        assert problem.code == ErrorCode.PROOF_FORMAT
        assert "10002 outputs; at most 10000" in str(problem)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff\xfe",
            b"[" * 1_000_000,
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
        html = html_of(notebook(*map(code, sources)), "proof.ipynb")
        label = '<div class="proof-cell"><p class="muted small">Code [1]</p>'
        stripped = re.sub(r'<div id="notebook-cell-[0-9]+">', "", html)
        stripped = stripped.replace(f'{label}<pre class="proof-code" tabindex="0"><code>', "")
        assert "<" not in stripped.replace("</code></pre></div></div>", "").replace("</div>", "")


@pytest.mark.parametrize("filename", ["proof.html", "proof", "proof.docx", "proof.md.exe"])
def test_other_files_are_a_problem(filename):
    assert problem_of(b"<script>alert(1)</script>", filename).code == ErrorCode.PROOF_FORMAT

r"""Small notebooks, each with something that public notebooks about privacy have and Jupyter shows.

They are written for these tests, after notebooks of accountants, of privacy libraries, of courses and of Jupyter's own
tools. A cell is Markdown if it is a text, otherwise code: its source and its outputs.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from docvqa_site.proofs.rendering import render_proof
from docvqa_site.proofs.unshown import summary

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\x80\0\0\1\xe0").decode()
JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\0\4JF\xff\xc0\0\x11\x08\0\x40\0\x30\3" + b"\0" * 9).decode()
GIF = base64.b64encode(b"GIF89a" + b"\0" * 9).decode()
SVG = '<?xml version="1.0"?>\n<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">\n<svg onload="alert(1)"/>'


def shown(plain: str = "<Figure size 640x480 with 1 Axes>", **data: Any) -> dict[str, Any]:
    """An output with these types of content, whose names have `_` in place of what no argument can contain."""
    kinds = {"svg": "image/svg+xml", "html": "text/html", "md": "text/markdown", "latex": "text/latex"}
    kinds |= {kind: f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp")}
    kinds |= {
        "widget": "application/vnd.jupyter.widget-view+json",
        "plotly": "application/vnd.plotly.v1+json",
    }
    content = {kinds[name]: value for name, value in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": {"text/plain": plain, **content}}


def printed(*texts: str, name: str = "stdout") -> list[dict[str, Any]]:
    return [{"output_type": "stream", "name": name, "text": text} for text in texts]


def raised(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": ["\x1b[0;31m---\x1b[0m"]}


@dataclass
class Case:
    """A notebook, what its page shows and doesn't, and what it says is missing."""

    cells: list[str | tuple[Any, ...] | dict[str, Any]]
    shows: list[str] = field(default_factory=list)
    hides: list[str] = field(default_factory=lambda: ["<code>$", "$$"])
    unshown: str = ""
    format: int = 4

    def content(self) -> bytes:
        if self.format < 4:
            worksheets = [{"cells": self.cells, "metadata": {}}]
            return json.dumps(
                {"nbformat": self.format, "metadata": {"name": ""}, "worksheets": worksheets}
            ).encode()
        cells = [cell if isinstance(cell, dict) else self._cell(cell) for cell in self.cells]
        return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}).encode()

    def _cell(self, cell: str | tuple[Any, ...]) -> dict[str, Any]:
        if isinstance(cell, str):
            return {"cell_type": "markdown", "metadata": {}, "source": cell}
        source, *outputs = cell
        flat = [part for output in outputs for part in (output if isinstance(output, list) else [output])]
        return {"cell_type": "code", "metadata": {}, "execution_count": 1, "source": source, "outputs": flat}


CASES = {
    "the density of the Laplace mechanism, a formula of cases in a paragraph": Case(
        [
            "The privacy loss is\n$$\nL(x) = \\begin{cases} \\varepsilon & x < 0 \\\\ "
            "-\\varepsilon & x > 1\\;, \\end{cases}\n$$\nby symmetry."
        ],
        [
            '<span class="formula" tabindex="0" role="group" aria-label="Formula"><math display="block">',
            "<mtable",
            "by symmetry.",
        ],
    ),
    "the definition of privacy, aligned in a paragraph": Case(
        [
            "For all $S$:\n$$\\begin{aligned} \\Pr[M(D) \\in S] &"
            "\\le e^\\varepsilon \\Pr[M(D') \\in S] \\\\ &+ \\delta \\end{aligned}$$"
        ],
        ["<mi>δ</mi>", 'class="math-right"'],
    ),
    "two dollars within a line": Case(["Then $$a = b$$ holds."], ["Then <span", "</span> holds."]),
    "spaces inside of dollars": Case(
        ["noise $ \\sigma = 1.2 $ added to $ u $"], ["<mn>1.2</mn>", "<mi>u</mi></math></p>"]
    ),
    "parentheses and brackets of LaTeX": Case(
        ["Clip \\(u_{i}\\) such that\n\n\\[ \\|u_{i}\\|_2 \\le C * a * b \\]"],
        ["<msub>", "∗"],
        ["<em>", "\\["],
    ),
    "an environment on its own": Case(
        ["\\begin{align}\n\\alpha &= c_1 * c_2 * c_3 \\\\\n\\beta &= 1\n\\end{align}"],
        ["<mtext>(2)</mtext>"],
        ["<em>", "\\begin"],
    ),
    "an environment that isn't numbered": Case(
        ["\\begin{align*} a &= b \\end{align*}"], ["<mtable"], ["(1)", "\\begin"]
    ),
    "an array of equations of old LaTeX": Case(
        ["\\begin{eqnarray}\nx &=& y \\\\\nz &\\le& w\n\\end{eqnarray}"], ["<mo>≤</mo>", "(2)"], ["\\begin"]
    ),
    "an equation that is split": Case(
        ["\\begin{equation}\n\\begin{split} a &= b \\\\ &= c \\end{split}\n\\end{equation}"],
        ["<mtext>(1)</mtext>"],
        ["\\begin"],
    ),
    "cases on their own": Case(["\\begin{cases} 1 & x \\\\ 0 & y \\end{cases}"], ["<mo>{</mo>"], ["\\begin"]),
    "a reference to an equation in a later cell": Case(
        [
            "By \\eqref{eq:amp_1} and (\\ref{eq:amp_1})",
            "\\begin{equation} q \\varepsilon \\label{eq:amp_1} \\end{equation}",
        ],
        ['<a href="#proof-eq-eq:amp-1"', ">(1)</a>", ">1</a>", 'id="proof-eq-eq:amp-1"'],
    ),
    "a number of the author's own": Case(
        ["$$ \\sigma = 2 \\tag{A.3} \\label{s} $$ as $\\eqref{s}$ says"], ["(A.3)</mtext>", "(A.3)</a>"]
    ),
    "commands in a cell of their own": Case(
        [
            "$\\newcommand{\\Mech}{\\mathcal{A}}\n\\newcommand{\\R}[1]{\\mathbb{R}^{#1}}$",
            "$\\Mech(D) \\in \\R{d}$",
        ],
        ["<mi>ℝ</mi>"],
    ),
    "operators that are declared, and declared again": Case(
        [
            "$$\\DeclareMathOperator*{\\argmax}{arg\\,max} \\def\\x{\\mathbf{x}}$$",
            "$\\renewcommand{\\x}{y} \\argmax_{t} \\x$",
        ],
        ["<mi>y</mi>"],
    ),
    "a blank line within a formula": Case(["$$\na = b\n\n+ c\n$$"], ["<mo>+</mo><mi>c</mi>"], ["<li>", "$$"]),
    "norms and absolute values in a table": Case(
        ["| step | bound |\n|---|---|\n| clip | $\\|u\\|_2 \\le C$ |\n| loss | $|\\ell(u)| \\le 1$ |"],
        ["‖", "<mo>≤</mo><mn>1</mn></math></td>"],
    ),
    "a formula within words of a formula": Case(
        ["$f(x) = 1 \\text{ if $x > 0$ holds}$"], ["<mtext>&nbsp;holds", "<mi>x</mi>"], ["<code>"]
    ),
    "a limit below an operator": Case(["$$\\mathop{\\mathbb{E}}\\limits_{x \\sim D} f(x)$$"], ["<munder>"]),
    "a power of a number": Case(
        ["$\\delta$ is 10$^{-5}$ for 2$\\times$2 tables"], [">−</mo><mn>5</mn>", ">×</mo>"]
    ),
    "a formula in a quote and one in a list": Case(
        ["> **Theorem.** For\n> $$\n> a > b\n> $$\n> and\n\n- so\n\n  $$c$$"],
        ["<blockquote>", "<mi>c</mi></math></span></p>\n</li>"],
        ["&gt; "],
    ),
    "prices, and dollars in code": Case(
        ["It costs $5 for one and $10 for two, see `$HOME` or\n\n```sh\necho $PATH $USER\n```"],
        ["$5 for one and $10 for two", "<code>$HOME</code>", "echo $PATH $USER"],
        ["<math"],
    ),
    "a package that nobody knows": Case(
        ["With $\\KL{P}{Q}$ and $x$:\n\n\\begin{theorem}\nA *bound* \\\\\n\\end{theorem}"],
        ["<code>$\\KL{P}{Q}$</code>", "A *bound* \\\\\n", "<mi>x</mi>", "Unknown command"],
        ["<em>"],
        unshown="2 formulas",
    ),
    "a reference to nothing": Case(["by $\\eqref{missing}$"], ["no equation has"], [], unshown="1 formula"),
    "a result of a computer algebra system": Case(
        [("loss", shown("exp(eps)", latex="$\\displaystyle e^{\\varepsilon}$", png=PNG))],
        ["<msup>"],
        ["exp(eps)<", "<img", "$"],
    ),
    "a formula displayed by code": Case(
        [("Math(r'\\sigma')", shown("<IPython.core.display.Math object>", latex="$$\\sigma$$"))],
        ["<mi>σ</mi>"],
    ),
    "a data frame in LaTeX, HTML and text": Case(
        [
            (
                "df",
                shown(
                    "   eps\n0  1.0", latex="\\begin{tabular}{l}eps\\end{tabular}", html="<table><tr><td>1.0"
                ),
            )
        ],
        ["   eps\n0  1.0"],
        ["tabular", "<td>"],
    ),
    "Markdown displayed by code": Case(
        [
            (
                "Markdown(text)",
                shown("<IPython.core.display.Markdown object>", md="**Lemma**: $\\epsilon \\le 1$"),
            )
        ],
        ["<strong>Lemma</strong>", "<mi>ϵ</mi>"],
        ["Markdown object"],
    ),
    "a plot as PNG": Case(
        [("plt.plot(x)", shown(png=PNG + "\n"))],
        [f'src="data:image/png;base64,{PNG}"', 'width="640" height="480"'],
        ["Figure size"],
    ),
    "a photograph as JPEG": Case(
        [("im", shown("<PIL.Image>", jpeg=JPEG))],
        ["data:image/jpeg;base64,", 'width="48" height="64"'],
        ["PIL.Image"],
    ),
    "a plot as SVG, whose script no browser runs in an image": Case(
        [("plt.plot(x)", shown(svg=SVG))],
        ['<img src="data:image/svg+xml;base64,'],
        ["<svg", "onload", "Figure size"],
    ),
    "an animation as GIF": Case([("anim", shown(gif=GIF))], ["data:image/gif;base64,"], ["Figure size"]),
    "a picture that is broken": Case(
        [("plt.plot(x)", shown("[<Line2D>]", png="not base64!"))],
        ["its content is not base64", "[&lt;Line2D&gt;]"],
        ["<img"],
        unshown="1 picture",
    ),
    "an attached picture, and one that isn't": Case(
        [
            {
                "cell_type": "markdown",
                "metadata": {},
                "source": "![the curve](attachment:curve%201.png) ![lost](attachment:lost.png) ![other](fig/other.png)",
                "attachments": {"curve 1.png": {"image/png": PNG}},
            }
        ],
        [
            'alt="the curve"',
            "Image: lost (attachment:lost.png, not part of the proof)",
            "Image: other (fig/other.png, not part",
        ],
        unshown="2 pictures",
    ),
    "a picture in the text itself": Case(
        [f"![scheme](data:image/png;base64,{PNG})"], ['alt="scheme" width="640"'], ["not part"]
    ),
    "widgets and interactive plots": Case(
        [
            ("go.Figure()", shown(plotly={"data": []}, html="<div>UNWANTED</div>")),
            ("slider", shown("IntSlider(value=3)", widget={"model_id": "1"})),
        ],
        [
            "An output of the type application/vnd.plotly.v1+json, text/html is not shown.",
            "IntSlider(value=3)",
        ],
        ["UNWANTED", "Figure size"],
        unshown="1 output",
    ),
    "a progress bar in parts": Case(
        [
            (
                "for _ in tqdm(rounds): train()",
                printed("\r  0%|     | 0/3", "\r 33%|█    | 1/3", "\r100%|█████| 3/3\n", name="stderr"),
            )
        ],
        ["<code>100%|█████| 3/3\n</code>"],
        ["33%", "  0%"],
    ),
    "a bar that was erased and a count with backspaces": Case(
        [("train()", printed("round 1 of 10\r             \rdone\r\n", "9\x0810\n"))],
        ["<code>done         \n10\n</code>"],
        ["round 1"],
    ),
    "colors, an error and a warning": Case(
        [
            (
                "1 / 0",
                printed("\x1b[1;32mINFO\x1b[0m \x1b[2K\x1b[?25lstart"),
                printed("careful", name="stderr"),
                raised("ZeroDivisionError", "by <0>"),
            )
        ],
        ["<code>INFO start</code>", "<code>careful</code>", "ZeroDivisionError: by &lt;0&gt;"],
        ["\x1b"],
    ),
    "footnotes, one without a reference": Case(
        ["As shown[^1].\n\n[^1]: Dwork et al., *2006*\n[^note]: Unused.", "Another[^1]\n\n[^1]: cell"],
        ["Dwork et al., <em>2006</em>", "Unused.", 'id="fn-proof-eq-1-1"', 'id="fn-proof-eq-2-1"'],
        ["[^1]"],
    ),
    "a very long output": Case(
        [("print(log)", printed("first" + "." * 100_001 + "last"))],
        ["80,010 characters are left out here.", "last</code>"],
        [],
        unshown="1 output",
    ),
    "format 3, with a heading, an output and a picture": Case(
        [
            {"cell_type": "heading", "level": 2, "metadata": {}, "source": ["Theorem"]},
            {"cell_type": "markdown", "metadata": {}, "source": "So $x$ holds."},
            {
                "cell_type": "code",
                "input": ["compute()"],
                "language": "python",
                "metadata": {},
                "prompt_number": 7,
                "outputs": [
                    {"output_type": "pyout", "prompt_number": 7, "metadata": {}, "text": ["4.2"]},
                    {"output_type": "display_data", "metadata": {}, "png": PNG},
                ],
            },
        ],
        [
            "Theorem</h3>",
            "<mi>x</mi></math> holds.",
            "Code [7]",
            "compute()",
            "<code>4.2</code>",
            "data:image/png;base64,",
        ],
        format=3,
    ),
    "the cells of a raw format, and none at all": Case(
        [
            {"cell_type": "raw", "metadata": {"raw_mimetype": "text/latex"}, "source": "\\maketitle $x$"},
            "",
            ("",),
        ],
        ["Raw", "\\maketitle $x$"],
        ["<math"],
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_notebook_is_shown_as_jupyter_shows_it_or_says_what_is_missing(case: Case) -> None:
    proof = render_proof(case.content(), "proof.ipynb")
    assert [piece for piece in case.shows if piece not in proof.html] == []
    assert [piece for piece in case.hides if piece in proof.html] == []
    assert summary(proof.unshown) == case.unshown
    assert ("Not displayed as in Jupyter: " + case.unshown in proof.html) == bool(case.unshown)


def test_a_byte_order_mark_belongs_to_no_text() -> None:
    marked = b"\xef\xbb\xbf"
    html = render_proof(marked + b"---\nseed: 1\n---\n# Proof\n", "proof.md").html
    assert "Front matter (1 entry)" in html
    assert '<h2 id="proof-proof">Proof</h2>' in html
    notebook = Case(["# Proof"]).content()
    assert render_proof(marked + notebook, "proof.ipynb") == render_proof(notebook, "proof.ipynb")

"""The report of a run: one HTML file that needs nothing else, to look at, keep and send.

It has no script and loads nothing, which its own security policy enforces. Whatever comes from the run's files is
text in it. A private run's report shows what `metrics.py` lets such a run have, and no more.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path

from evaluator.mechanisms.units import PrivacyUnit
from evaluator.scoring.metrics import cut
from starter_kit.reporting.files import read_file, replace_file
from starter_kit.reporting.metrics import (
    METRICS,
    SUMMARY,
    RoundMetrics,
    RunSummary,
    check_private,
    read_metrics,
    read_summary,
)
from starter_kit.reporting.plots import Drawn, draw_plots, write_plots
from starter_kit.reporting.rounding import epsilon_text, significant, size_text

REPORT = "report.html"
SETTINGS = "settings.yaml"
STYLE = Path(__file__).with_name("report.css")
# As runs record it.
ONE_THREAD = re.compile(r"\b1 threads\b")
REPLACED = "\N{REPLACEMENT CHARACTER}"
# Every value is markup already: made here, or escaped by `_clean`.
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'sha256-{digest}'; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{experiment}: training run</title>
<style>{style}</style>
</head>
<body>
<header><p class="kind">Training run</p><h1>{experiment}</h1><p class="short">{short}</p></header>
<main>
{sections}
</main>
</body>
</html>
"""

COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "clients": ("clients", str),
    "providers": ("providers", str),
    "bytes_down": ("bytes down", "{:,}".format),
    "bytes_up": ("bytes up", "{:,}".format),
    "loss": ("training loss", significant),
    "epsilon": ("ε so far", epsilon_text),
    "anls": ("ANLS", cut),
    "accuracy": ("accuracy", cut),
    "sample_anls": ("ANLS on a sample", cut),
    "sample_accuracy": ("accuracy on the sample", cut),
    "seconds": ("seconds", "{:,.1f}".format),
}

PROTECTED = {
    PrivacyUnit.PROVIDER: "whether any one provider, with all its documents, took part",
    PrivacyUnit.CLIENT: "whether any one client, with all its data, took part",
    PrivacyUnit.RECORD: "what any one record holds, a question with its answer",
}

EXPLAINED = {
    "bytes_down": "Bytes down are sent to clients, bytes up to the server.",
    "loss": "The training loss is the mean over the clients' training, in nats per token.",
    "epsilon": "“ε so far” covers all rounds up to and including this one.",
    "anls": "ANLS (average normalized Levenshtein similarity) and accuracy are those of the round's model on the "
    "validation split, from 0 to 1.",
    "sample_anls": "Rounds are compared on a sample of the validation split: the same questions each time.",
}


def write_report(folder: Path) -> Path:
    """Write `report.html` and `plots/` of a run folder from its settings, metrics and summary.

    Returns:
        The path of the report.

    Raises:
        ProblemError: (`E_RUN_FOLDER`) One of the files isn't there or can't be read, the report can't be written, or a
            private run reports what it must not.
    """
    settings = read_file(folder / SETTINGS).decode(errors="replace").replace("\r\n", "\n")
    metrics = read_metrics(folder / METRICS)
    summary = read_summary(folder / SUMMARY)
    plots = draw_plots(metrics, summary)
    path = folder / REPORT
    replace_file(path, report(settings, metrics, summary, plots))
    write_plots(folder, plots)
    return path


def _in_use(settings: str) -> str:
    """Return settings without Shampoo's where another optimizer trained."""
    if re.search(r"^  optimizer: shampoo$", settings, re.MULTILINE):
        return settings
    return re.sub(r"^  shampoo:\n(?:    .*\n)*", "", settings, count=1, flags=re.MULTILINE)


def report(
    settings: str, metrics: Sequence[RoundMetrics], summary: RunSummary, plots: Sequence[Drawn]
) -> str:
    """Return the report as HTML; `settings` are shown as they are, without the group of an optimizer that isn't used.

    Raises:
        ProblemError: See `check_private`.
    """
    check_private(metrics, summary)
    style = STYLE.read_text(encoding="utf-8")
    sections = [
        _section("summary", "Summary", _scroll("summary", _summary_table(summary))),
        _section("privacy", "Privacy", *(f"<p>{_clean(text)}</p>" for text in _privacy(summary))),
    ]
    if plots:
        sections.append(
            _section("plots", "Plots", f'<div class="plots">{"".join(map(_figure, plots))}</div>')
        )
    if metrics:
        explained = f'<p class="note">{_clean(_explained(metrics))}</p>'
        sections.append(_section("rounds", "Rounds", _scroll("rounds", _rounds_table(metrics)), explained))
    sections.append(
        _section("settings", "Settings", _scroll("settings", f"<pre>{_clean(_in_use(settings))}</pre>"))
    )
    return PAGE.format(
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        experiment=_clean(summary.experiment),
        style=style,
        short=_clean(_in_short(summary)),
        sections="\n".join(sections),
    )


def _in_short(summary: RunSummary) -> str:
    parts = [
        f"{summary.method}, {_number_of(summary.rounds, 'round')}",
        f"{size_text(summary.bytes_total)} sent",
    ]
    if summary.anls is not None:
        parts.append(f"ANLS {cut(summary.anls, summary.decimals)} on {summary.split}")
    parts.append(
        f"ε = {epsilon_text(summary.epsilon)} for each {summary.unit}" if summary.unit else "not private"
    )
    return " · ".join(parts)


def _summary_table(summary: RunSummary) -> str:
    rows = (
        f'<tr><th scope="row">{_clean(name)}</th><td>{_clean(text)}</td></tr>'
        for name, text in _summary_rows(summary)
    )
    return f'<table class="pairs"><tbody>{"".join(rows)}</tbody></table>'


def _summary_rows(summary: RunSummary) -> Iterable[tuple[str, str]]:
    yield "method", summary.method
    if summary.anls is None:
        yield "ANLS", "not evaluated yet: run pfl evaluate"
    else:
        yield "ANLS", f"{cut(summary.anls, summary.decimals)}, on the split {summary.split}"
    if summary.accuracy is not None:
        yield "accuracy", f"{cut(summary.accuracy, summary.decimals)}, on the split {summary.split}"
    yield "rounds", str(summary.rounds)
    yield from _comparison_rows(summary)
    yield "bytes sent, both ways", f"{size_text(summary.bytes_total)} ({summary.bytes_total:,} bytes)"
    yield "numbers in a message", f"{summary.parameters_sent:,}, as {summary.codec}"
    if summary.unit:
        yield "ε", f"{epsilon_text(summary.epsilon)} at δ = {summary.delta:g}, for each {summary.unit}"
    if summary.epsilon is not None and summary.budget is not None:
        kept = "kept" if summary.epsilon <= summary.budget else "exceeded"
        yield "budget", f"ε = {summary.budget:g}, {kept}"
    if summary.seconds is not None:
        yield "time", f"{summary.seconds:,.0f} s"
    if summary.resumed:
        yield "interrupted and resumed", _number_of(summary.resumed, "time")
    if summary.finished:
        yield "finished on", summary.finished.isoformat()
    if summary.device:
        yield "trained on", ONE_THREAD.sub("1 thread", summary.device)
    yield "version of the kit", summary.kit_version
    if summary.versions:
        yield "versions", ", ".join(f"{name} {number}" for name, number in summary.versions.items())
    if summary.clients is not None:
        yield "clients in the federation", str(summary.clients)
    if summary.data_sha256:
        yield "SHA-256 of the data's manifest", summary.data_sha256
    yield "SHA-256 of the base weights", summary.base_sha256
    yield "SHA-256 of the checkpoint", summary.checkpoint_sha256


def _comparison_rows(summary: RunSummary) -> Iterable[tuple[str, str]]:
    """How rounds were compared with each other."""
    if summary.sample_questions:
        yield "rounds compared by", f"{summary.sample_questions:,} questions of the validation split"
    if summary.best_round is not None:
        yield "best round", f"{summary.best_round}, with its model in checkpoints"


def _privacy(summary: RunSummary) -> Iterable[str]:
    """What is private and what ε means; one paragraph each."""
    if not summary.unit:
        yield (
            "This run is not private: its model and its messages may reveal the content of single documents "
            "to whoever sees them."
        )
        return
    judged = (
        "the workers recompute it from the training record after submission"
        if summary.unit is PrivacyUnit.PROVIDER
        else "the leaderboard's ε protects each provider, and this ε doesn't"
    )
    yield (
        f"What is protected is {PROTECTED[summary.unit]}: everything that the training released reveals no more about "
        f"that than ε = {epsilon_text(summary.epsilon)} at δ = {summary.delta:g} allows, as the trainer's own "
        f"accountant claims; {judged}."
    )
    yield (
        "This is the ε of this run alone. Other runs on the same data reveal more, including runs that only served to "
        "choose settings."
    )
    yield ("This report leaves out numbers that would show who took part, as do the run's public files.")


def _figure(drawn: Drawn) -> str:
    words = _clean(f"{drawn.plot.title}. {drawn.plot.in_words}")
    return (
        f'<figure><picture><source media="(prefers-color-scheme: dark)" srcset="{_data_uri(drawn.dark)}">'
        f'<img src="{_data_uri(drawn.light)}" alt="{words}"></picture></figure>'
    )


def _shown(metrics: Sequence[RoundMetrics]) -> list[str]:
    """The numbers that some round has."""
    return [name for name in COLUMNS if any(getattr(line, name) is not None for line in metrics)]


def _explained(metrics: Sequence[RoundMetrics]) -> str:
    """What the columns mean, where their names don't say it."""
    return " ".join(EXPLAINED[name] for name in _shown(metrics) if name in EXPLAINED)


def _rounds_table(metrics: Sequence[RoundMetrics]) -> str:
    """A column for every number that some round has."""
    shown = _shown(metrics)
    heads = "".join(
        f'<th scope="col">{head}</th>' for head in ["round", *(COLUMNS[name][0] for name in shown)]
    )
    rows = "\n".join(_row(line, shown) for line in metrics)
    return f'<table class="numbers"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


def _row(line: RoundMetrics, shown: Sequence[str]) -> str:
    values = [(getattr(line, name), COLUMNS[name][1]) for name in shown]
    cells = [f"<td>{'–' if value is None else _clean(text(value))}</td>" for value, text in values]
    return "\n".join([f'<tr><th scope="row">{line.round}</th>', *cells, "</tr>"])


def _section(name: str, title: str, *content: str) -> str:
    return f'<section><h2 id="{name}">{title}</h2>{"".join(content)}</section>'


def _scroll(name: str, content: str) -> str:
    """A box in which wide content scrolls, and many rounds do, with the keyboard as well."""
    return f'<div class="scroll {name}" tabindex="0" role="region" aria-labelledby="{name}">{content}</div>'


def _clean(text: str) -> str:
    """Escape `text`, without the characters that HTML forbids or that change how the text around them reads."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else REPLACED for c in text))


def _data_uri(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def _number_of(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"

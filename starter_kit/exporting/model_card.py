"""The model card of a run: what was trained, on what, how private it is, how well it answers, and how to load it."""

from dataclasses import dataclass

import yaml

from evaluator.scoring.metrics import cut
from starter_kit.reporting.metrics import RunSummary
from starter_kit.reporting.rounding import epsilon_text, size_text

TAGS = ["federated-learning", "document-question-answering", "vt5", "pfl-docvqa"]
LIBRARY = "pfl-docvqa-benchmark"
TASK = "document-question-answering"
NOT_STATED = "not stated: that of the base weights and of the data applies"

LOAD_MODEL = """```python
from pathlib import Path

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.inference import predict
from evaluator.docvqa.reference import open_reference

model, tokenizer = open_reference(Path("."))  # this folder, as downloaded
answers = predict(model, tokenizer, Dataset(Path("data/public"), "valid"))
```"""
LOAD_BACKBONE = """```python
import torch
from safetensors.torch import load_file
from transformers import T5Config, T5ForConditionalGeneration

prefix = "language_backbone."
weights = load_file("model.safetensors")
backbone = T5ForConditionalGeneration(T5Config.from_pretrained("."))
backbone.load_state_dict(
    {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)},
    strict=False,  # the embedding, which T5 uses in four places, is stored once
)
if "answer_head.weight" in weights:  # T5 1.1 and Flan-T5 score answers with a table of their own
    backbone.lm_head.weight = torch.nn.Parameter(weights["answer_head.weight"])
```"""
LOAD_ADAPTER = """```python
from pathlib import Path

from peft import PeftModel

from evaluator.docvqa.reference import open_reference

model, tokenizer = open_reference(Path("base"))  # the base weights
model = PeftModel.from_pretrained(model, ".")  # this folder, as downloaded
```"""


@dataclass(frozen=True)
class Origin:
    """What a run's files don't say: each empty where it isn't stated.

    Attributes:
        license: The identifier of a license, as the Hub lists them.
        base_model, dataset: Names at the Hub.
    """

    license: str = ""
    base_model: str = ""
    dataset: str = ""


def model_card(summary: RunSummary, settings: str, origin: Origin, *, adapter: bool) -> str:
    """Return the card as Markdown with its front matter, as the Hub reads it.

    Args:
        settings: The run's settings as YAML.
        adapter: The folder has adapters alone.
    """
    front = yaml.safe_dump(
        _front_matter(summary, origin, adapter=adapter), sort_keys=False, allow_unicode=True
    )
    rows = [f"| {name} | {value} |" for name, value in _facts(summary, origin)]
    parts = [
        f"---\n{front}---",
        f"# {summary.experiment}",
        f"A VT5 for questions about documents, trained with federated learning by the method "
        f"`{summary.method}` of the PFL-DocVQA benchmark's starter kit{', as low-rank adapters' if adapter else ''}.",
        "\n".join(["| | |", "| --- | --- |", *rows]),
        "## Privacy",
        _privacy(summary),
        "## How to load it",
        f"With the benchmark's package, `{LIBRARY}`:",
        LOAD_ADAPTER if adapter else LOAD_MODEL,
        *([] if adapter else ["The language model alone, with transformers:", LOAD_BACKBONE]),
        "## Settings",
        f"````yaml\n{settings.strip()}\n````",
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(summary: RunSummary, origin: Origin, *, adapter: bool) -> dict[str, object]:
    tags = [*TAGS, *(["differential-privacy"] if summary.is_private else [])]
    found: dict[str, object] = {
        "license": origin.license,
        "base_model": origin.base_model,
        "datasets": [origin.dataset] if origin.dataset else [],
        "language": "en",
        "pipeline_tag": TASK,
        "library_name": "peft" if adapter else LIBRARY,
        "tags": tags,
        "model-index": _results(summary, origin),
    }
    return {name: value for name, value in found.items() if value}


def _results(summary: RunSummary, origin: Origin) -> list[dict[str, object]]:
    """The scores, in the layout that the Hub shows beside a model; none where the run wasn't evaluated."""
    scores = {"anls": summary.anls, "accuracy": summary.accuracy}
    metrics = [
        {
            "type": name,
            "name": name.upper() if name == "anls" else name,
            "value": float(cut(score, summary.decimals)),
        }
        for name, score in scores.items()
        if score is not None
    ]
    if not metrics:
        return []
    dataset = {
        "type": origin.dataset or "pfl-docvqa",
        "name": origin.dataset or "not stated",
        "split": summary.split,
    }
    return [
        {
            "name": summary.experiment,
            "results": [{"task": {"type": TASK}, "dataset": dataset, "metrics": metrics}],
        }
    ]


def _facts(summary: RunSummary, origin: Origin) -> list[tuple[str, str]]:
    facts = [
        ("method", summary.method),
        ("rounds", str(summary.rounds)),
        ("sent in all messages", f"{size_text(summary.bytes_total)}, both ways, as {summary.codec}"),
        ("trained numbers", f"{summary.parameters_sent:,}"),
        ("base weights", f"{origin.base_model or 'not stated'}, SHA-256 `{summary.base_sha256}`"),
        ("data", origin.dataset or "not stated"),
        ("license", origin.license or NOT_STATED),
        ("version of the kit", summary.kit_version),
    ]
    if summary.anls is not None and summary.accuracy is not None:
        anls, accuracy = (cut(score, summary.decimals) for score in (summary.anls, summary.accuracy))
        scores = f"{anls} and {accuracy}, on the split {summary.split}"
        facts.insert(0, ("ANLS and accuracy", scores))
    if summary.unit:
        spent = f"{epsilon_text(summary.epsilon)} at δ = {summary.delta:g}, for each {summary.unit}"
        facts.insert(0, ("ε", spent))
    return facts


def _privacy(summary: RunSummary) -> str:
    if summary.unit is None:
        return (
            "None. The model may reveal the content of single documents that it was trained on. Publish it only where "
            "the documents themselves may be public."
        )
    return (
        f"Differential privacy with ε = {epsilon_text(summary.epsilon)} at δ = {summary.delta:g} hides whether any one "
        f"{summary.unit} took part in this run. It is what the trainer's own accountant claims, of this run alone; "
        "other runs on the same data, also those that served to choose settings, cost privacy beside it. "
        "`training/training_record.jsonl`, where it is there, is the signed record that ε can be computed from again."
    )

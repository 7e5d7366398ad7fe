"""The Python examples of docs/starter-kit.md, run as they are printed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast
from transformers.models.t5.configuration_t5 import T5Config
from transformers.models.t5.modeling_t5 import T5ForConditionalGeneration

from evaluator.docvqa.reference import open_reference
from starter_kit.exporting.model_card import LOAD_BACKBONE

GUIDE = Path(__file__).parents[2] / "docs" / "starter-kit.md"


def example(containing: str) -> str:
    """The one example that contains this text."""
    (found,) = [
        code
        for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        if containing in code
    ]
    return str(found)


@pytest.mark.slow
def test_a_script_trains_with_a_callback_and_its_run_opens_in_transformers(
    base: Path, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "public").symlink_to(data)
    (tmp_path / "base").symlink_to(base)
    check = "assert t5.lm_head.weight.equal(weights['language_backbone.shared.weight'])\n"
    code = example("class Printed") + example("run, prefix =") + check
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1", "2"]


def test_flan_t5_becomes_base_weights_and_opens_in_transformers_again(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small model in its place, which is read from a folder instead of the Hub."""
    config = T5Config(
        vocab_size=400,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=1,
        num_decoder_layers=1,
        num_heads=4,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )
    t5 = T5ForConditionalGeneration(config)
    t5.lm_head.weight = torch.nn.Parameter(torch.randn_like(t5.lm_head.weight))
    t5.save_pretrained(tmp_path / "flan")
    PreTrainedTokenizerFast(tokenizer_file=str(base / "tokenizer.json")).save_pretrained(tmp_path / "flan")
    code = example("flan-t5-base").replace("google/flan-t5-base", str(tmp_path / "flan"))
    code = code.replace('Path("base")', f'Path("{tmp_path}/base")').replace('"base"', f'"{tmp_path}/base"')
    exec(compile(code, str(GUIDE), "exec"), {})
    model, _ = open_reference(tmp_path / "base")
    assert model.answer_head is not None
    assert torch.equal(model.answer_head.weight, t5.lm_head.weight)

    opened: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path / "base")
    exec(LOAD_BACKBONE.removeprefix("```python").removesuffix("```"), opened)
    ids = torch.tensor([[5, 6, 1]])
    scores = (each.eval()(input_ids=ids, decoder_input_ids=ids).logits for each in (t5, opened["backbone"]))
    assert torch.equal(*scores)

"""What a VT5 is made of: the contents of its `config.json` and `visual_config.json`.

Both files keep the layout that the published code writes and reads; what that code doesn't know lies under one
key of its own, `pfl_docvqa`, which it ignores. The defaults are the benchmark's full-size model: T5-base and the
document image transformer DiT-base.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from evaluator.docvqa.dataset import first_line
from evaluator.errors import ErrorCode, ProblemError
from evaluator.messages.untrusted_text import decode

# The most tokens of a generated answer, including the start token.
MAX_ANSWER_LENGTH = 20

SHARED_EMBEDDING = "language_backbone.shared.weight"
# T5 ties these to the shared embedding; some writers save them, and they may be there as exact copies.
ALIASES = frozenset(
    f"language_backbone.{name}.weight" for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")
)

OWN_KEY = "pfl_docvqa"
OWN_FIELDS = {"box_scale", "max_input_tokens", "published_batching", "train_visual_tower"}
# What `config.json` must say of a VT5, where it says it at all: other values mean another architecture, or another
# computation with the same tensors.
KIND = {"model_type": "t5", "architectures": ["HF_VT5"]}
# What follows from how T5's feed-forward layers are made: in T5, and in T5 1.1 and Flan-T5.
FEED_FORWARD: dict[str, dict[str, object]] = {
    "relu": {"dense_act_fn": "relu", "is_gated_act": False},
    "gated-gelu": {"dense_act_fn": "gelu_new", "is_gated_act": True},
}
VISUAL_SWITCHES = {"hidden_act": "gelu", "model_type": "beit"}
# What the published code, too, added to T5's configuration.
NOT_OF_T5 = OWN_FIELDS | {"visual", "max_2d_position_embeddings", "layer_norm_eps", "hidden_dropout_prob"}


class VisualConfig(BaseModel):
    """The image tower: a BEiT with absolute positions and layer scale, as DiT is. `image_size` is in pixels."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    hidden_size: PositiveInt = 768
    num_hidden_layers: PositiveInt = 12
    num_attention_heads: PositiveInt = 12
    intermediate_size: PositiveInt = 3072
    image_size: PositiveInt = 224
    patch_size: PositiveInt = 16
    layer_norm_eps: float = 1e-12
    layer_scale_init_value: float = 0.1
    use_absolute_position_embeddings: Literal[True] = True
    use_relative_position_bias: Literal[False] = False
    use_shared_relative_position_bias: Literal[False] = False
    use_mean_pooling: Literal[True] = True

    @property
    def tokens(self) -> int:
        """Number of tokens that a page image becomes: its patches and one for the whole."""
        return (self.image_size // self.patch_size) ** 2 + 1


class VT5Config(BaseModel):
    """The whole model. Names and defaults are T5's, but for these:

    Attributes:
        feed_forward_proj: `gated-gelu` in T5 1.1 and Flan-T5.
        tie_word_embeddings: Whether answers are scored with the embedding of the words, as in T5; T5 1.1 and Flan-T5
            have a table of their own for it, which a checkpoint holds as `answer_head.weight`.
        max_2d_position_embeddings: Size of the tables of box coordinates, which run from 0 to 1000.
        layer_norm_eps, hidden_dropout_prob: Those of the box embedding; T5 has its own two.
        box_scale: What word boxes in [0, 1] are multiplied by before they are cut down to whole numbers. The
            published model was trained with 1, by which nearly every coordinate becomes 0 and the layout is
            lost; 1000 preserves it.
        max_input_tokens: Longest text, question and words, that is read of a page.
        published_batching: Follow the published code in how rows of a batch are padded and how long their
            confidence runs on, by which results depend on the rows that share a batch. To reproduce its numbers.
        train_visual_tower: Whether the image tower's weights are trained too.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    vocab_size: PositiveInt = 32128
    d_model: PositiveInt = 768
    d_kv: PositiveInt = 64
    d_ff: PositiveInt = 3072
    num_layers: PositiveInt = 12
    num_decoder_layers: PositiveInt = 12
    num_heads: PositiveInt = 12
    relative_attention_num_buckets: PositiveInt = 32
    relative_attention_max_distance: PositiveInt = 128
    dropout_rate: float = Field(default=0.1, ge=0, lt=1)
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: Literal["relu", "gated-gelu"] = "relu"
    tie_word_embeddings: bool = True
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int = 0

    max_2d_position_embeddings: int = Field(default=1024, gt=1000)
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = Field(default=0.1, ge=0, lt=1)

    box_scale: Literal[1, 1000] = 1
    max_input_tokens: int = Field(default=512, gt=1)
    published_batching: bool = False
    train_visual_tower: bool = False

    visual: VisualConfig = VisualConfig()

    @model_validator(mode="before")
    @classmethod
    def _lift_own_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get(OWN_KEY), dict):
            return {**data, **data[OWN_KEY]}
        return data

    def to_dict(self) -> dict[str, Any]:
        """Return the values by name: libraries such as PEFT ask a model's configuration for them by this method."""
        return self.model_dump()


def read_config(folder: Path) -> VT5Config:
    """Return the architecture that `folder` describes; without a `visual_config.json`, the tower is DiT-base.

    Raises `ProblemError` where a file is missing or broken (`E_REFERENCE_FORMAT`) or describes another architecture
    (`E_REFERENCE_ARCHITECTURE`).
    """
    visual_path = folder / "visual_config.json"
    try:
        config: dict[str, Any] = _read_json(folder / "config.json")
        visual: dict[str, Any] = _read_json(visual_path) if visual_path.exists() else {}
        feed_forward = FEED_FORWARD.get(config.get("feed_forward_proj", "relu"), {})
        _require_vt5(folder / "config.json", config, KIND | feed_forward, named=KIND)
        _require_vt5(visual_path, visual, VISUAL_SWITCHES)
        return VT5Config.model_validate({**config, "visual": visual})
    except (OSError, ValueError, TypeError) as error:
        raise ProblemError.of(
            ErrorCode.REFERENCE_FORMAT,
            where=f"{folder}/config.json",
            expected="a VT5's configuration",
            found=first_line(error),
        ) from error


def write_config(config: VT5Config, folder: Path) -> None:
    """Write `config.json` and `visual_config.json` so that the published code can read the folder as well."""
    published = {
        "architectures": ["HF_VT5"],
        "model_type": "t5",
        "is_encoder_decoder": True,
        "torch_dtype": "float32",
        "visual_module_config": {
            "model": "dit",
            "model_weights": "microsoft/dit-base-finetuned-rvlcdip",
            "finetune": config.train_visual_tower,
        },
        **config.model_dump(exclude={"visual", *OWN_FIELDS}),
        OWN_KEY: config.model_dump(include=OWN_FIELDS),
    }
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", published)
    _write_json(folder / "visual_config.json", config.visual.model_dump())


def _read_json(path: Path) -> dict[str, Any]:
    value = json.loads(decode(path.read_bytes()))
    if not isinstance(value, dict):
        raise TypeError(f"a {type(value).__name__}, not an object")
    return value


def _require_vt5(
    path: Path, config: dict[str, Any], expected: dict[str, Any], named: Iterable[str] = ()
) -> None:
    """Reject a configuration with other values than `expected`, or without any of the keys in `named`."""
    for key, value in expected.items():
        if key in config and config[key] != value:
            found = config[key]
            raise _another(f"{path}, {key}", value, found[0] if isinstance(found, list) and found else found)
    if named and not any(key in config for key in named):
        raise _another(f"{path}, model_type", KIND["model_type"], "no such key")


def _another(where: str, expected: object, found: object) -> ProblemError:
    wanted = expected[0] if isinstance(expected, list) else expected
    return ProblemError.of(ErrorCode.REFERENCE_ARCHITECTURE, where, f"{wanted}, as in a VT5", found)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")

"""Decoding a run's messages with its codec plug-in, for the evaluator.

`decode` is for a sandbox, as the codec's file may be anybody's.

It is given messages of one direction and nothing else, so that what it makes of them follows from them, from the
codec's settings and from its file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from starter_kit.compression.plugin_codecs import CODECS, CodecPlugin, decoded
from starter_kit.own_files import run_own_file


def decode(inputs: Any, _: Callable[[object], None]) -> dict[str, str]:
    """Decode what an `evaluator.folding.decoding.DecodingRequest` asks; return the problem, or nothing."""
    try:
        codec = _codec(inputs).with_layout([torch.Size(shape) for shape in inputs["shapes"]])
        read = codec.decode_model if inputs["models"] else codec.decode
        size = sum(torch.Size(shape).numel() for shape in inputs["shapes"])
        with Path(inputs["messages"]).open("rb") as messages, Path(inputs["out"]).open("wb") as out:
            for number, length in enumerate(inputs["lengths"], start=1):
                try:
                    vector = decoded(codec, read, messages.read(length), size)
                except ValueError as error:
                    return {"problem": f"message {number}: {error}"}
                out.write(vector.detach().numpy().astype("<f4", copy=False).tobytes())
    except MemoryError:
        # The sandbox reports it.
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the team's own, whatever it is
        return {"problem": f"{type(error).__name__}: {error}"}
    return {"problem": ""}


def _codec(inputs: Any) -> CodecPlugin:
    """Return the codec with its settings."""
    file = inputs["file"]
    found = (
        getattr(run_own_file(Path(file)), CODECS.class_name) if file else CODECS.plugin_class(inputs["name"])
    )
    codec = found.model_validate_json(inputs["settings"], strict=True)
    if not isinstance(codec, CodecPlugin):
        raise TypeError(f"a codec is derived from CodecPlugin, which {found} isn't")
    return codec

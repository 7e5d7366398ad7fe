"""Counting bytes: folding a run of LoRA with NF4, and what writing a transcript adds to a round.

The fold reads 40 messages of 2 MB each. The writing is timed in a training of the tiny VT5 whose local trainings take
40 steps, all tensors trained and sent as float32: the most bytes for the least training that a config of the kit has.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from evaluator.checkpoints.weight_changes import changed_tensors
from evaluator.communication.codecs import CODECS, packed_model
from evaluator.folding.folding import Floats, WeightFiles, fold, start_vector, state_sha256
from evaluator.folding.lines import (
    BuiltIn,
    TranscriptEnd,
    TranscriptMessage,
    TranscriptRound,
    TranscriptRun,
    messages_root,
)
from evaluator.folding.opening import folded_rounds
from evaluator.folding.reading import MessageFile, Transcript
from evaluator.folding.server_step import stepped
from evaluator.messages.file_hash import sha256_of
from evaluator.messages.jobs import SERVER
from evaluator.messages.progress import ignore_progress
from evaluator.records.lines import TrainableTensor
from evaluator.records.server_steps import SumStep
from starter_kit.runs.transcript import TranscriptWriter
from tests.evaluator.folding.made_runs import hashed
from tests.starter_kit.pocket_data import make_base, make_data
from tests.starter_kit.training_runs import trained

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

SHAPE = [1024, 3472]
ROUNDS, CLIENTS = 10, 2
MAX_FOLD_S = 10.0
MAX_SHARE = 0.05


def make_large(folder: Path) -> tuple[Transcript, Path, Path, Path]:
    """Return a run of ten rounds with two clients, its messages, its base weights and its checkpoint."""
    base, checkpoint, content = (folder / name for name in ("base.safetensors", "end.safetensors", "m.bin"))
    generator = torch.Generator().manual_seed(1)
    save_file({"w": torch.randn(*SHAPE, generator=generator)}, base)
    codec, random = CODECS["nf4"], np.random.default_rng(1)
    run = TranscriptRun(
        base_sha256=sha256_of(base),
        clients=CLIENTS,
        codec=BuiltIn(name="nf4"),
        lora_scale=None,
        server=SumStep(learning_rate=1.0),
        start="seed 1",
        trainable=[TrainableTensor(name="w", shape=SHAPE)],
    )
    start = start_vector(run, base)
    weights, state, rounds = start.copy(), dict[str, Floats](), []
    contents: dict[str, bytes] = {}
    for number in range(1, ROUNDS + 1):
        model = packed_model(codec, weights, start)
        updates = [codec.encode(random.standard_normal(len(start), dtype=np.float32)) for _ in range(CLIENTS)]
        sent = [(SERVER, client, model) for client in range(CLIENTS)]
        sent += [(client, SERVER, update) for client, update in enumerate(updates)]
        contents |= {hashed(payload): payload for _, _, payload in sent}
        total = np.zeros_like(start)
        for update in updates:
            total += codec.decode(update, len(start))
        weights = stepped(run.server, weights, total / np.float32(CLIENTS), state)
        messages = [
            TranscriptMessage(
                sender=sender, receiver=receiver, size_bytes=len(payload), sha256=hashed(payload)
            )
            for sender, receiver, payload in sent
        ]
        rounds.append(
            TranscriptRound(round=number, messages=messages, state_sha256=state_sha256(weights, state))
        )
    content.write_bytes(b"".join(contents.values()))
    save_file({"w": torch.from_numpy(weights.reshape(SHAPE))}, checkpoint)
    leaves = [message.leaf for line in rounds for message in line.messages]
    end = TranscriptEnd(
        rounds=ROUNDS, messages_root=messages_root(leaves), checkpoint_sha256=sha256_of(checkpoint)
    )
    return Transcript(run, rounds, end), content, base, checkpoint


def test_folding_forty_messages_of_two_megabytes(tmp_path: Path) -> None:
    transcript, content, base, checkpoint = make_large(tmp_path)
    sizes = [message.size_bytes for message in transcript.messages]
    changes = changed_tensors(base, checkpoint)
    began = time.process_time()
    folded = folded_rounds(transcript, None, 0)
    messages = MessageFile(content, folded)
    fold(folded, messages, WeightFiles(base, checkpoint, changes), ignore_progress)
    seconds = time.process_time() - began
    print(
        f"folding {len(sizes)} messages of {max(sizes) / 1e6:.2f} MB: {seconds:.2f} s, at most {MAX_FOLD_S:g} s"
    )
    assert len(sizes) == 40
    assert seconds < MAX_FOLD_S


def test_what_writing_a_transcript_adds_to_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[float] = []

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                spent.append(time.perf_counter() - began)

        return call

    for name in ("message", "round"):
        monkeypatch.setattr(TranscriptWriter, name, timed(getattr(TranscriptWriter, name)))
    base, data = make_base(tmp_path / "base"), make_data(tmp_path / "data")
    began = time.perf_counter()
    trained("fedavg", base, data, tmp_path / "run", ["rounds=4", "local.max_steps=40", "clients_per_round=2"])
    share = sum(spent) / (time.perf_counter() - began)
    print(f"writing a transcript: {share:.2%} of the training's time, at most {MAX_SHARE:.0%}")
    assert share < MAX_SHARE

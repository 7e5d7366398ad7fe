"""How many genuine runs the record checks flag or reject: `python -m tests.genuine_runs --runs 200 --processes 2`.

It is no part of the tests, as two hundred runs of every setting take hours. Each run is trained on the tests' few
pages by the kit's own trainer, with every private config that writes a training record, each placement and each codec;
noise and coins are new in every run, and its challenge is drawn as the site draws it. A run counts as a false alarm if
its evaluation rejects it or flags any check.
"""

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from evaluator.contracts import CheckStatus, PrivacyRules, TrackRules
from evaluator.errors import ProblemError
from starter_kit.runs.answering import answer_challenge
from tests.starter_kit.pocket_data import make_base, make_data
from tests.starter_kit.training_runs import accounting, trained

# Clients on machines of their own add noise each, or hide their sums from the server.
SETTINGS: dict[str, tuple[str, list[str]]] = {
    "FL-PROVIDER-DP": ("fl-provider-dp", []),
    "FL-PROVIDER-DP, clients sampled": ("fl-provider-dp", ["sampling.client_rate=0.6", "rounds=5"]),
    "FL-PROVIDER-DP, noise by clients": ("fl-provider-dp", ["placement=client_full"]),
    "FL-PROVIDER-DP, noise by clients, NF4": ("fl-provider-dp", ["placement=client_full", "codec=nf4"]),
    "FL-PROVIDER-DP, replayable": ("fl-provider-dp", ["replayable=true"]),
    "secure aggregation": ("secure-aggregation", []),
    "centralized DP": ("centralized-dp", []),
    "DP-CLGECL": ("dp-clgecl", []),
    "DP-CLGECL, NF4": ("dp-clgecl", ["codec=nf4"]),
    "DP-CLGECL with momentum": ("dp-clgecl-momentum", []),
    "DP-LoRA": ("dp-lora", ["rounds=3"]),
    "DP-LoRA, a tensor trained beside": ("dp-lora", ["trainable=['*.decoder.final_layer_norm.weight']"]),
}


def alarms(name: str, base: Path, data: Path, keep: Path | None) -> list[str]:
    """Train one run, evaluate it as the site would, and return the checks that flag it, or the codes that reject it.

    Args:
        keep: Where the folder of a run with an alarm is kept, with its challenge, to look into it.
    """
    config, changes = SETTINGS[name]
    rules = TrackRules(
        reference="local",
        test_set="local",
        clients=1 if config == "centralized-dp" else 3,
        privacy=PrivacyRules(epsilon=8, delta=1e-5),
    )
    with tempfile.TemporaryDirectory() as folder:
        run = trained(config, base, data, Path(folder) / "run", changes)
        challenge = secrets.token_hex(32)
        answer_challenge(run.path, challenge)
        try:
            checks = accounting(run.files(), base, rules, challenge).checks
            found = [check.id for check in checks if check.status is CheckStatus.FLAGGED]
        except ProblemError as error:
            found = [problem.code for problem in error.problems]
        if found and keep:
            shutil.copytree(run.path, keep / f"{name}, {challenge}")
    return found


def page(counts: Mapping[str, tuple[int, int, Counter[str]]]) -> str:
    """Return the counts as Markdown: for each setting the runs, those with an alarm, and what it was."""
    rows = [
        f"| {name} | {runs} | {flagged} | {', '.join(f'{code}: {count}' for code, count in found.items())} |"
        for name, (runs, flagged, found) in counts.items()
    ]
    return "\n".join(
        [
            "# Genuine runs that were flagged",
            "",
            "Written by `python -m tests.genuine_runs --page docs/genuine-runs.md`, which trains runs of the kit's",
            "private configs on a few pages and evaluates them. None should be flagged or rejected.",
            "",
            "| setting | runs | flagged or rejected | by |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="of every setting")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", choices=SETTINGS, help="one setting")
    parser.add_argument("--keep", type=Path, help="a folder for the runs that are flagged or rejected")
    parser.add_argument("--page", type=Path, help="the file to write the counts to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts: dict[str, tuple[int, int, Counter[str]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        base, data = make_base(Path(folder) / "base"), make_data(Path(folder) / "data")
        # Spawned, as forked processes would draw the same coins and noise.
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
            for name in [options.only] if options.only else SETTINGS:
                begun = time.monotonic()
                found = Counter[str]()
                flagged = 0
                for of_run in pool.map(
                    alarms, *zip(*[(name, base, data, options.keep)] * options.runs, strict=True)
                ):
                    found.update(of_run)
                    flagged += bool(of_run)
                counts[name] = options.runs, flagged, found
                seconds = time.monotonic() - begun
                which = (
                    f" ({', '.join(f'{code}: {count}' for code, count in found.items())})" if found else ""
                )
                sys.stdout.write(f"{name}: {flagged} of {options.runs}{which}, {seconds:.0f} s\n")
                sys.stdout.flush()
    if options.page:
        options.page.write_text(page(counts), encoding="utf-8")
    return 1 if any(flagged for _, flagged, _ in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

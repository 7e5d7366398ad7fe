"""How many genuine runs the record checks flag or reject: `python -m tests.studies genuine-runs`.

No test runs this, as two hundred runs of every setting take hours. Each run is trained on the tests' few pages
by the kit's own trainer, with every private config that writes a training record, each placement and each codec that
its settings allow; noise and coins are new in every run, and its challenge is drawn as the site draws it. A run counts
as a false alarm if its evaluation rejects it or flags any check.
"""

import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import torch

from evaluator.errors import ProblemError
from evaluator.mechanisms.noise import Placement
from evaluator.messages.jobs import CheckStatus, PrivacyRules, TrackRules
from starter_kit.compression.codecs import BUILT_IN
from starter_kit.compression.plugin_codecs import CODECS
from starter_kit.console import log
from starter_kit.federation.rounds import Client
from starter_kit.runs.answering import answer_challenge
from starter_kit.runs.executed_code import ROOT
from starter_kit.settings.config_files import config_names
from starter_kit.settings.configuration import load_settings
from tests.starter_kit.pocket_data import make_base, make_data
from tests.starter_kit.training_runs import accounting, trained
from tests.studies.covered_code import covered_sha256
from tests.studies.markdown import fill
from tests.studies.tallies import Tally, Trial, alarms_of, count, current, started, table

FEW = [Client(number, {f"{number}": [number]}) for number in range(3)]
# What follows a config's name, beside each placement and codec.
MORE = (
    "fl-provider-dp, sampling.client_rate=0.6, rounds=5",
    "fl-provider-dp, replayable=true",
    "dp-lora, rounds=3",
    "dp-lora, trainable=['*.decoder.final_layer_norm.weight']",
)
# Messages of a private run have one size, and those of these modules vary.
VARYING = ("coded_nf4", "directions", "entropy", "kseed")


def _except(folder: str, *names: str) -> list[str]:
    """The modules of a folder but these."""
    modules = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).glob("*.py"))
    return [module for module in modules if PurePosixPath(module).stem not in names]


# What decides about an alarm, beside the method: the checks, and what makes a record and the files that it is of.
COVERED = (
    "evaluator/accounting/*.py",
    "evaluator/mechanisms/*.py",
    "evaluator/records/*.py",
    *_except("starter_kit/compression", *VARYING),
    "starter_kit/dp/*.py",
    "starter_kit/federation/*.py",
    "starter_kit/learning/local_training.py",
    "starter_kit/learning/tensors.py",
    *_except("starter_kit/plugins/codecs", *VARYING),
    "starter_kit/plugins/server_optimizers/*.py",
    "starter_kit/runs/answering.py",
    "starter_kit/runs/private_record.py",
    "starter_kit/runs/record_line.py",
    "starter_kit/runs/replayable.py",
    "starter_kit/runs/round_secret.py",
    "starter_kit/runs/vectors.py",
    "starter_kit/runs/writing.py",
    "starter_kit/secure_aggregation/*.py",
)


def settings() -> list[str]:
    """The settings to count: a config's name and the changes of its settings."""
    found = []
    for config in config_names():
        loaded = None if config.startswith("full/") else load_settings(config)
        if loaded and "placement" in type(loaded).model_fields and loaded.plan(FEW).record_terms:
            found += [
                f"{config}, placement={placement}, codec={codec}"
                for placement, codec in product(Placement, [*BUILT_IN, *CODECS.names])
                if is_allowed(config, placement, codec)
            ]
    return [*found, *MORE]


def is_allowed(config: str, placement: Placement, codec: str) -> bool:
    try:
        load_settings(config, _changes(f"{config}, placement={placement}, codec={codec}"))
    except ProblemError:
        return False
    return True


def _config(setting: str) -> str:
    return setting.split(", ")[0]


def _changes(setting: str) -> list[str]:
    changes = setting.split(", ")[1:]
    return [*changes, "secure_aggregation={}"] if "placement=client_share" in changes else changes


def codes(names: Iterable[str]) -> dict[str, str]:
    """Return the hash of the code that a count of each setting is of."""
    return {name: covered_sha256(COVERED, _config(name), _changes(name)) for name in names}


def try_setting(name: str, base: Path, data: Path, keep: Path | None) -> Trial:
    """Train one run and evaluate it as the site would; found are the checks that flag it, or the codes that reject it.

    Args:
        keep: Where the folder of a run with an alarm is kept, with its challenge, to look into it.
    """
    torch.set_num_threads(1)
    begun, config = time.process_time(), _config(name)
    rules = TrackRules(
        reference="local",
        test_set="local",
        clients=1 if config == "centralized-dp" else 3,
        privacy=PrivacyRules(epsilon=8, delta=1e-5),
    )
    with TemporaryDirectory() as folder:
        run = trained(config, base, data, Path(folder) / "run", _changes(name))
        challenge = secrets.token_hex(32)
        answer_challenge(run.path, challenge)
        try:
            checks = accounting(run.files(), base, rules, challenge).checks
            found = [check.id for check in checks if check.status is CheckStatus.FLAGGED]
        except ProblemError as error:
            found = [problem.code for problem in error.problems]
        if found and keep:
            shutil.copytree(run.path, keep / f"{config}-{challenge}")
    return Trial(found, time.process_time() - begun)


def run(earlier: list[Tally] | None, runs: int, processes: int, keep: Path | None) -> Iterator[list[Tally]]:
    """Yield all tallies, first as they begin, then after each run that is made."""
    known = codes(settings())
    begun = started(earlier or [], known)
    yield begun
    with TemporaryDirectory() as folder:
        base, data = make_base(Path(folder) / "base"), make_data(Path(folder) / "data")
        attempt = partial(try_setting, base=base, data=data, keep=keep)
        for tally, grown in count(begun, known, runs, attempt, processes):
            log(f"{tally.name}: {alarms_of([tally])} {tally.found or ''}")
            yield grown


def page(tallies: Sequence[Tally]) -> str:
    """Return the page of these tallies; which of them are of earlier code follows from the code as it is."""
    known = codes(sorted({tally.name for tally in tallies}))
    return fill(
        Path(__file__).with_suffix(".md"),
        alarms=alarms_of(current(tallies, known)),
        table=table(tallies, known),
    )


def faults(tallies: Sequence[Tally]) -> list[str]:
    """Return the settings with false alarms, by any code."""
    return [f"{tally.name}: {tally.alarms} false alarms" for tally in tallies if tally.alarms]

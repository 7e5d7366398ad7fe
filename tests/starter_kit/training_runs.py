"""Training runs on pocket data, for the tests of what comes after training."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evaluator.messages.jobs import AccountingResult, ArtifactKind, PrivacyRules, Step, TrackRules
from evaluator.pipeline import StepInputs, run_step
from starter_kit.runs.folder import RunFolder
from starter_kit.runs.progress import Watcher
from starter_kit.runs.training import OpenEngine, in_process, train
from starter_kit.settings.configuration import load_settings
from starter_kit.settings.run_settings import LocalTrainingSettings
from starter_kit.site.credentials import Credentials

KEY = Ed25519PrivateKey.generate()
RUN_TOKEN = "a-token-of-the-site"
RULES = TrackRules(
    reference="local", test_set="local", clients=3, privacy=PrivacyRules(epsilon=8, delta=1e-5)
)
FEW_STEPS = ["rounds=2", "max_input_tokens=32", "local.max_steps=1"]


def trained(
    config: str,
    base: Path,
    data: Path,
    out: Path,
    changes: Sequence[str] = (),
    run_token: str | None = RUN_TOKEN,
    *,
    credentials: Callable[[], Credentials] | None = None,
    watcher: Watcher | None = None,
    resume: bool = False,
    open_engine: OpenEngine = in_process,
) -> RunFolder:
    """A finished run of two quick rounds."""
    trains = isinstance(load_settings(config), LocalTrainingSettings)
    quick = FEW_STEPS if trains else [change for change in FEW_STEPS if not change.startswith("local.")]
    train(
        load_settings(config, [*quick, *changes]),
        data=data,
        base=base,
        out=out,
        track="track-2",
        credentials=credentials or (lambda: Credentials(KEY, run_token)),
        watcher=watcher or Watcher(),
        resume=resume,
        open_engine=open_engine,
    )
    return RunFolder(out)


def accounting(
    files: Mapping[ArtifactKind, Path], base: Path, rules: TrackRules = RULES, challenge: str | None = None
) -> AccountingResult:
    """What the evaluator finds of the privacy of a run with these files."""
    inputs = StepInputs(files, rules, reference=base, challenge=challenge)
    result = run_step(Step.ACCOUNTING, inputs, lambda done, total: None).result
    assert isinstance(result, AccountingResult)
    return result

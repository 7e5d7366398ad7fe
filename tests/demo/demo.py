"""The whole path once, on this machine: data, training, upload, evaluation, both leaderboards.

`make demo` runs it. Everything happens as it would for a participant: the trainers are the starter kit's, the
files go over HTTP with `pfl submit`, and real workers recompute ε and score on the secret test set. Private training
asks the site for its run tokens and signs its records with a key that is made on the way. As many runs train at once as
there are cores.
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from evaluator.docvqa.dataset import Dataset
from evaluator.docvqa.manifest import manifest_sha256
from evaluator.messages.tuned_rates import SERVER_LEARNING_RATES, changes_at
from tests.demo.kit import offering_kit
from tests.demo.parallel import Command, CommandError, SideBySide, Start, start_program
from tests.demo.stack import Stack, StackError

ROOT = Path(__file__).resolve().parents[2]
PFL = Path(sys.executable).parent / "pfl"
REFERENCE = "vt5-tiny"
TEST_SET = "demo"
# Half of the config's: half of the time. The noise falls with the sample, and the scores stay what they are.
FL_PROVIDER_DP_SAMPLING = "sampling.provider_rate=0.15"
TRACK_OVERRIDES = [
    f"*.reference={REFERENCE}",
    f"*.test_set={TEST_SET}",
    '*.phases=[{"submissions_per_day": 20}]',
]
# As `Scale.threshold`, of real receipts.
RECEIPTS_THRESHOLD = 0.02
# What names a site's database, cache, broker and store.
BACK_ENDS = ("PFL_DATABASE_URL", "PFL_CACHE_URL", "PFL_BROKER_URL", "PFL_STORE_")
# Shown on every page, since the results look like others.
NOTICE = "This is a demonstration. Its models are tiny, and its results don't count toward the benchmark."
# Of the pages that say who runs a site.
ABOUT = {
    "PFL_NOTICE": NOTICE,
    "PFL_ORGANIZERS": "the person who started this demonstration",
    "PFL_CONTROLLER": "The person who started this demonstration",
    "PFL_LEGAL_BASIS": "This is a demonstration: enter made-up names and addresses only.",
}
TRACKS = ["track-1", "track-2"]
EXPORTS = [
    "/leaderboard/{slug}.csv",
    "/leaderboard/{slug}.json",
    "/leaderboard/{slug}.schema.json",
    "/leaderboard/{slug}/feed/",
    "/api/v1/leaderboards/{slug}",
]
ORGANIZERS = [("organizer@demo.example", "Olga Organizer"), ("reviewer@demo.example", "Rafael Reviewer")]


@dataclass(frozen=True)
class Scale:
    """How much a demonstration draws and trains.

    Attributes:
        forms: Options of `pfl data forms`: of so many training providers, and of as many others, leakage is measured.
        settings: Of every run, before its own.
        threshold: Of the tiny model's ANLS in track 1, with which the untrained model isn't ranked and what has learned
            is. The competition's own is for the full-size model.
        workers: At most so many evaluate; no more than there are cores.
    """

    forms: tuple[str, ...] = ("--red-providers", "60")
    settings: tuple[str, ...] = ()
    threshold: float = 0.75
    workers: int = 3  # as many as a submission has runs


class StepError(Exception):
    """A step of the demonstration failed; the message says what it printed."""


@dataclass(frozen=True)
class Participant:
    """Someone with a team of their own."""

    email: str
    name: str
    team: str


@dataclass(frozen=True)
class Training:
    """One run: whose it is, its folder, a config that comes with the kit, and what is set otherwise."""

    participant: Participant
    folder: str
    config: str
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """What is submitted to a track at once: in track 2 a run for each budget, and the proof of its privacy."""

    title: str
    track: str
    trainings: Sequence[Training]
    proof: Path | None = None
    description: str = ""


def within_budgets(participant: Participant, config: str, *settings: str) -> list[Training]:
    return [
        Training(
            participant,
            f"{config}-epsilon-{budget}",
            config,
            (*changes_at(config, budget), *settings),
        )
        for budget in SERVER_LEARNING_RATES[config]
    ]


# Two teams, as a team's private runs are accounted for together: what one has trained and not submitted yet is flagged.
ADA = Participant("ada@demo.example", "Ada Participant", "Baselines")
BEN = Participant("ben@demo.example", "Ben Participant", "Adapters")
UNTRAINED = Training(ADA, "untrained", "fedavg", ("rounds=0",))
FEDAVG = Training(ADA, "fedavg", "fedavg")
LORA_NF4 = Training(BEN, "lora-nf4", "lora-nf4")
FL_PROVIDER_DP = within_budgets(ADA, "fl-provider-dp", FL_PROVIDER_DP_SAMPLING)
DP_LORA = within_budgets(BEN, "dp-lora")
LONGEST_FIRST = [*FL_PROVIDER_DP, FEDAVG, LORA_NF4, *DP_LORA, UNTRAINED]
PROOF = ROOT / "docs" / "proofs" / "fl-provider-dp.md"
METHODS = [
    Method(
        "FL-PROVIDER-DP",
        "track-2",
        FL_PROVIDER_DP,
        PROOF,
        "Each sampled provider trains alone. Its update is clipped, and Gaussian noise is added to the sum, as in the "
        "competition's baseline. [Method and settings](/docs/methods/#fl-provider-dp), "
        "[proof of the baseline](/docs/proofs/fl-provider-dp/).",
    ),
    Method(
        "DP-LoRA",
        "track-2",
        DP_LORA,
        PROOF,
        "Like FL-PROVIDER-DP, but only low-rank adapters of the attention layers are trained: with fewer "
        "weights, less noise is needed. [Method and settings](/docs/methods/#dp-lora), "
        "[proof of the baseline](/docs/proofs/fl-provider-dp/).",
    ),
    Method(
        "Untrained base weights",
        "track-1",
        [UNTRAINED],
        description="The model from which all training starts, without any round: it sends no bytes.",
    ),
    Method(
        "FedAvg",
        "track-1",
        [FEDAVG],
        description="In each of 10 rounds, two clients train on all their examples, and the server averages their "
        "updates. All numbers are sent as float32. [Method and settings](/docs/methods/#fedavg).",
    ),
    Method(
        "LoRA + NF4",
        "track-1",
        [LORA_NF4],
        description="FedAvg for 6 rounds, with one client per round. Only two parts are trained: rank-6 adapters of "
        "the attention layers, and the box and image layers in full. Both are sent at 4.5 bits per value. "
        "[Method and settings](/docs/methods/#fedavg).",
    ),
]


class Steps:
    """Numbers the steps, names the one that failed and says how long each took."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0
        self.title = ""
        self.started = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        self.number += 1
        self.title = title
        begun = time.monotonic()
        say(f"\n[{self.number}/{self.total}] {title}")
        yield
        now = time.monotonic()
        say(f"      done in {now - begun:.0f} s ({now - self.started:.0f} s since the start)")


def password_variable(email: str) -> str:
    """Return the environment variable that hands an account's password to the command that creates it."""
    return f"DEMO_PASSWORD_{email.partition('@')[0].upper()}"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def cores() -> int:
    """How many this process may use, where the system tells; or all that there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def clear_demo_folder(home: Path) -> None:
    """Make `home` an empty folder, removing an earlier demonstration but never anything else."""
    marker = home / ".pfl-demo"
    if home.exists() and any(home.iterdir()) and not marker.exists():
        raise StepError(
            f"{home} is not empty and holds no earlier demonstration: name another folder with --home."
        )
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    marker.touch()


class Demo:
    """One demonstration in `home`, an empty folder.

    Args:
        data: A folder of real receipts, or None.
        back_ends: The variables that name services; without any the site runs on its embedded ones.
        start: How trainings and submissions are started.
    """

    def __init__(
        self,
        home: Path,
        data: Path | None,
        port: int,
        back_ends: Mapping[str, str] | None = None,
        *,
        scale: Scale = Scale(),
        start: Start = start_program,
    ) -> None:
        self.home = home
        self.receipts = data
        self.scale = scale
        self.start_command = start
        # The tiny model's operations are too small to share between threads, and slow each other down if they are.
        variables = {"OMP_NUM_THREADS": "1", **ABOUT, **(back_ends or {})}
        self.stack = Stack(home, port=port, variables=variables)
        self.passwords: dict[str, str] = {}
        self.recovery_codes: dict[str, list[str]] = {}
        self.tokens: dict[Participant, str] = {}
        self.steps = Steps(total=7)

    @property
    def public(self) -> Path:
        return self.home / "data" / "public"

    @property
    def snapshot(self) -> Path:
        return self.home / "snapshot"

    @property
    def base(self) -> Path:
        return self.stack.evaluator_home / "references" / REFERENCE

    def run(self) -> None:
        """All steps in order. Raises `StepError` or `StackError`."""
        with self.steps.step(
            "Preparing the documents: " + (str(self.receipts) if self.receipts else "synthetic forms")
        ):
            self.prepare_data()
        with self.steps.step("Writing the base weights: a tiny VT5 that reads public cards"):
            self.base.parent.mkdir(parents=True)
            self.pfl(ADA, "base", "create", self.base)
        with self.steps.step("Starting the site and its workers"):
            self.start_site()
        with self.steps.step(f"Training {len(LONGEST_FIRST)} runs, as many at once as there are cores"):
            self.train(LONGEST_FIRST)
        with self.steps.step(f"Submitting {len(METHODS)} methods, as many at once as there are cores"):
            self.submit(METHODS)
        with self.steps.step("Both leaderboards"):
            measured = [] if self.receipts else TRACKS
            *_, boards, _ = self.stack.manage_all(
                [
                    ["mark_baselines", ADA.team, "--by", ORGANIZERS[0][0]],
                    *(["measure_leakage", track, "--wait"] for track in measured),
                    ["leaderboard"],
                    ["freeze", str(self.snapshot)],
                ]
            )
            say("\n" + boards)
        with self.steps.step("Every export of the leaderboards, and a snapshot that verifies itself"):
            self.export()

    def export(self) -> None:
        """Fetch every export as a visitor does, and verify the frozen boards as an organizer does."""
        for slug in TRACKS:
            for address in EXPORTS:
                self.fetch(address.format(slug=slug))
        verified = subprocess.run(
            [sys.executable, self.snapshot / "verify.py"], text=True, capture_output=True, check=False
        )
        if verified.returncode:
            raise StepError(
                f"The snapshot in {self.snapshot} isn't right:\n{verified.stdout}{verified.stderr}"
            )
        self.pfl(BEN, "verify", self.stack.url)

    def fetch(self, address: str) -> None:
        """Get an address of the site. Raises `StepError` if it answers with an error."""
        answer = requests.get(self.stack.url + address, timeout=60)
        if not answer.ok:
            raise StepError(f"{address} answered {answer.status_code}")

    def prepare_data(self) -> None:
        target = self.home / "data"
        if self.receipts:
            self.pfl(ADA, "data", "receipts", self.receipts, target, "--private", "0")
        else:
            self.pfl(ADA, "data", "forms", target, *self.scale.forms, "--private", "0")
        test_sets = self.stack.evaluator_home / "test_sets"
        test_sets.mkdir(parents=True)
        # From here on only the worker's folder holds the test set and its answers.
        (target / "secret").rename(test_sets / TEST_SET)

    def start_site(self) -> None:
        commands = {
            "tracks": ["load_tracks", "--publish", *self.track_overrides()],
            # Compressed, and with names that browsers may keep.
            "static files": ["collectstatic", "--noinput", "--verbosity", "0"],
        }
        for participant in (ADA, BEN):
            commands[f"account {participant.email}"] = self.create_user(participant.email, participant.name)
            commands[f"team {participant.email}"] = [
                "create_team",
                participant.team,
                "--owner",
                participant.email,
            ]
            commands[f"token {participant.email}"] = ["create_token", participant.email, "--label", "demo"]
        commands |= self.download_commands()
        for email, name in ORGANIZERS:
            options = ("--superuser", "--second-factor")
            commands[f"account {email}"] = self.create_user(email, name, *options)
        passwords = {password_variable(email): password for email, password in self.passwords.items()}
        printed = dict(zip(commands, self.stack.start(*commands.values(), **passwords), strict=True))
        for number in range(2, min(cores(), self.scale.workers) + 1):
            self.stack.start_process(f"worker-{number}")
        for participant in (ADA, BEN):
            self.tokens[participant] = printed[f"token {participant.email}"]
            self.pfl(participant, "key", "create")
        for email, _ in ORGANIZERS:
            self.recovery_codes[email] = printed[f"account {email}"].rpartition("Recovery codes: ")[2].split()
        say(f"      {self.stack.url} answers; logs are in {self.home / 'logs'}")

    def download_commands(self) -> dict[str, list[str]]:
        """Return the commands that offer kit, base weights and the made-up data; real receipts aren't ours to give."""
        folders = {"base": (self.base, "weights", "Base weights of the tiny VT5", "")}
        if not self.receipts:
            folders["data"] = (self.public, "data", "Synthetic forms (demo data)", self.data_in_numbers())
        commands = {}
        for name, (folder, kind, title, summary) in folders.items():
            archive = shutil.make_archive(str(self.home / f"demo-{name}"), "zip", folder)
            options = ("--kind", kind, "--title", title, "--summary", summary, "--license", "Apache-2.0")
            commands[f"download {name}"] = ["add_download", archive, *options]
        return commands | offering_kit(self.home / "kit")

    def data_in_numbers(self) -> str:
        """Return how much of what the data for training has, in a sentence."""
        train, valid = (Dataset(self.public, split) for split in ("train", "valid"))
        providers = sum(len(of_client) for of_client in train.info.clients.values())
        return (
            f"Made-up forms: {len(train.pages):,} for training, with {len(train.questions):,} questions, from "
            f"{providers:,} providers on {len(train.info.clients)} clients; {len(valid.pages):,} for validation, with "
            f"{len(valid.questions):,} questions."
        )

    def track_overrides(self) -> list[str]:
        threshold = RECEIPTS_THRESHOLD if self.receipts else self.scale.threshold
        clients = Dataset(self.public, "train").info.clients
        providers = [len(clients[client]) for client in sorted(clients)]
        overrides = [
            *TRACK_OVERRIDES,
            f"track-1.anls_threshold={threshold}",
            f"track-2.providers_per_client={providers}",
            f'track-2.data_sha256="{manifest_sha256(Dataset(self.public, "train"))}"',
        ]
        if not self.receipts:
            overrides += [f"*.leakage_set={TEST_SET}", "*.leakage_split=red-trained"]
        return [argument for override in overrides for argument in ("--set", override)]

    def create_user(self, email: str, name: str, *options: str) -> list[str]:
        """Return the command that creates an account with a new password."""
        self.passwords[email] = secrets.token_urlsafe(12)
        return ["create_user", email, "--name", name, "--password-env", password_variable(email), *options]

    def train(self, trainings: Sequence[Training]) -> None:
        self.side_by_side({training.folder: self.train_command(training) for training in trainings})

    def submit(self, methods: Sequence[Method]) -> None:
        """Submit all of `methods`, and wait until each run has its score."""
        self.side_by_side({f"submit {method.title}": self.submit_command(method) for method in methods})

    def side_by_side(self, commands: Mapping[str, Command]) -> None:
        """Run all of `commands`, as many at once as there are cores."""
        parallel = SideBySide(
            at_once=cores(),
            logs=self.home / "logs",
            cwd=self.home,
            on_end=lambda name, seconds: say(f"      {name}: {seconds:.0f} s"),
            start=self.start_command,
        )
        try:
            parallel.run(commands)
        except CommandError as error:
            raise StepError(str(error)) from error
        self.stack.check()

    def train_command(self, training: Training) -> Command:
        where = ["--data", self.public, "--base", self.base, "--out", self.run_folder(training)]
        # With a seed of its own, each demonstration would have other numbers.
        chosen = ("seed=42", *self.scale.settings, *training.settings)
        settings = [word for setting in chosen for word in ("--set", setting)]
        arguments = [str(PFL), "train", training.config, *map(str, where), *settings]
        return Command(arguments, self.pfl_environment(training.participant))

    def run_folder(self, training: Training) -> Path:
        return self.home / "save" / training.folder

    def submit_command(self, method: Method) -> Command:
        runs = [str(self.run_folder(training)) for training in method.trainings]
        proof = ["--proof", str(method.proof)] if method.proof else []
        arguments = [
            str(PFL),
            "submit",
            *runs,
            "--track",
            method.track,
            "--title",
            method.title,
            "--description",
            method.description,
            *proof,
            "--wait",
        ]
        return Command(arguments, self.pfl_environment(method.trainings[0].participant))

    def pfl(self, participant: Participant, *arguments: str | Path) -> None:
        """Run one command of the starter kit, its output shown as it comes."""
        command = [str(PFL), *map(str, arguments)]
        code = subprocess.run(
            command, env=self.pfl_environment(participant), cwd=self.home, check=False
        ).returncode
        self.stack.check()
        if code:
            raise StepError(
                f"`pfl {' '.join(map(str, arguments[:2]))}` ended with code {code}; see its message above."
            )

    def pfl_environment(self, participant: Participant) -> dict[str, str]:
        return {
            **self.stack.environment,
            "PFL_SITE": self.stack.url,
            "PFL_TOKEN": self.tokens.get(participant, ""),
            # Never the user's own.
            "PFL_KEY": str(self.home / "keys" / f"{participant.team.lower()}.pem"),
        }

    def serve(self) -> None:
        """Keep the site up until Ctrl-C."""
        say(f"\nThe site is at {self.stack.url} (Ctrl-C stops it). Log in with:")
        for email, password in self.passwords.items():
            role = "organizer, also at /admin/" if email in dict(ORGANIZERS) else "participant"
            say(f"  {email}  {password}  ({role})")
            if codes := self.recovery_codes.get(email):
                say(f"    second factor, each code once: {', '.join(codes[:5])}")
        while True:
            time.sleep(1)
            self.stack.check()


def named_back_ends() -> dict[str, str]:
    """The variables of the environment that name a database, a cache, a broker and a store."""
    return {name: value for name, value in os.environ.items() if name.startswith(BACK_ENDS)}


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a folder of receipts: img/*.jpg, box/*.csv, key/*.json")
    parser.add_argument(
        "--home", type=Path, default=ROOT / "var" / "demo", help="emptied first (default: var/demo)"
    )
    parser.add_argument("--port", type=int, default=8000, help="another one is taken if it is in use")
    parser.add_argument(
        "--services",
        action="store_true",
        help="on the empty services that PFL_DATABASE_URL and its like name",
    )
    options = parser.parse_args()
    if options.data and not (options.data / "img").is_dir():
        parser.error(f"{options.data}: a folder with img/, box/ and key/ is expected")
    home = options.home.resolve()
    try:
        clear_demo_folder(home)
    except StepError as error:
        parser.error(str(error))
    back_ends = named_back_ends() if options.services else {}
    demo = Demo(home, options.data and options.data.resolve(), options.port, back_ends)
    # As Ctrl-C: otherwise the site would go on after its terminal has been closed.
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, interrupt)
    try:
        demo.run()
        if sys.stdin.isatty() and sys.stdout.isatty():
            demo.serve()
    except (StepError, StackError) as error:
        say(f"\nStep {demo.steps.number} failed: {demo.steps.title}\n{error}")
        return 1
    except KeyboardInterrupt:
        say("\nStopping.")
    finally:
        demo.stack.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

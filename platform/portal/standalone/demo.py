"""The whole path once, on this machine: data, training, upload, evaluation, both leaderboards.

`make demo` runs it. Everything happens as it would for a participant: the trainers are the starter kit's, the
files go over HTTP with `pfl submit`, and real workers recompute ε and score on the secret test set. Private training
asks the site for its run tokens and signs its records with a key that is made on the way.
"""

import argparse
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.standalone.stack import Stack, StackError

ROOT = Path(__file__).resolve().parents[3]
PFL = Path(sys.executable).parent / "pfl"
REFERENCE = "vt5-tiny"
TEST_SET = "demo"
BUDGETS = (1, 4, 8)
# Only the demo's tiny model gets this threshold: the competition's own is for the full-size one.
TRACK_OVERRIDES = [
    f"*.reference={REFERENCE}",
    f"*.test_set={TEST_SET}",
    "track-1.anls_threshold=0.05",
    "*.submissions_per_day=20",
]
PARTICIPANT = ("participant@demo.example", "Ada Participant", "Baselines")
ORGANIZERS = [("organizer@demo.example", "Olga Organizer"), ("reviewer@demo.example", "Rafael Reviewer")]


class StepError(Exception):
    """A step of the demonstration failed; the message says what it printed."""


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


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


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
    """One demonstration in `home`, an empty folder. `data` is a folder of real receipts or None."""

    def __init__(self, home: Path, data: Path | None, port: int) -> None:
        self.home = home
        self.receipts = data
        # The tiny model's operations are too small to share between threads, and slow each other down if they are.
        self.stack = Stack(home, port=port, variables={"OMP_NUM_THREADS": "1"})
        self.passwords: dict[str, str] = {}
        self.steps = Steps(total=9)

    @property
    def public(self) -> Path:
        return self.home / "data" / "public"

    @property
    def base(self) -> Path:
        return self.stack.evaluator_home / "references" / REFERENCE

    def run(self) -> None:
        """All steps in order. Raises `StepError` or `StackError`."""
        with self.steps.step(
            "Preparing the documents: " + (str(self.receipts) if self.receipts else "synthetic invoices")
        ):
            self.prepare_data()
        with self.steps.step("Pre-training the base weights of a tiny VT5 on made-up public cards"):
            self.base.parent.mkdir(parents=True)
            self.pfl("base", "create", self.base)
        with self.steps.step("Starting the site and its worker"):
            self.start_site()
        with self.steps.step("Submitting the untrained model, as a reference, in track 1"):
            untrained = self.home / "save" / "untrained"
            self.train("fedavg", untrained, "rounds=0")
            self.submit("track-1", "Untrained base weights", untrained)
        with self.steps.step("Training the FedAvg baseline"):
            fedavg = self.home / "save" / "fedavg"
            self.train("fedavg", fedavg)
        with self.steps.step("Submitting it in track 1"):
            self.submit("track-1", "FedAvg", fedavg)
        private = [self.home / "save" / f"fl-provider-dp-epsilon-{budget}" for budget in BUDGETS]
        with self.steps.step(f"Training the FL-PROVIDER-DP baseline at ε = {', '.join(map(str, BUDGETS))}"):
            for budget, folder in zip(BUDGETS, private, strict=True):
                self.train("fl-provider-dp", folder, f"target_epsilon={budget}")
        with self.steps.step("Submitting its three runs in track 2"):
            proof = ROOT / "docs" / "proofs" / "fl-provider-dp.md"
            self.submit("track-2", "FL-PROVIDER-DP", *private, proof=proof)
        with self.steps.step("Both leaderboards"):
            say("\n" + self.stack.manage("leaderboard"))

    def prepare_data(self) -> None:
        target = self.home / "data"
        if self.receipts:
            self.pfl("data", "receipts", self.receipts, target)
        else:
            self.pfl("data", "synthetic", target)
        test_sets = self.stack.evaluator_home / "test_sets"
        test_sets.mkdir(parents=True)
        # From here on only the worker's folder holds the test set and its answers.
        (target / "secret").rename(test_sets / TEST_SET)

    def start_site(self) -> None:
        self.stack.start()
        manage = self.stack.manage
        manage("load_tracks", *(argument for override in TRACK_OVERRIDES for argument in ("--set", override)))
        email, name, team = PARTICIPANT
        self.create_user(email, name)
        for organizer in ORGANIZERS:
            self.create_user(*organizer, "--superuser")
        manage("create_team", team, "--owner", email)
        self.token = manage("create_token", email, "--label", "demo")
        say(f"      {self.stack.url} answers; logs are in {self.home / 'logs'}")

    def create_user(self, email: str, name: str, *options: str) -> None:
        password = self.passwords[email] = secrets.token_urlsafe(12)
        self.stack.manage(
            "create_user",
            email,
            "--name",
            name,
            "--password-env",
            "DEMO_PASSWORD",
            *options,
            DEMO_PASSWORD=password,
        )

    def train(self, config: str, folder: Path, *settings: str) -> None:
        arguments = [argument for setting in settings for argument in ("--set", setting)]
        self.pfl("train", config, "--data", self.public, "--base", self.base, "--out", folder, *arguments)

    def submit(self, track: str, title: str, *runs: Path, proof: Path | None = None) -> None:
        arguments: list[str | Path] = ["submit", *runs, "--track", track, "--title", title, "--wait"]
        if proof:
            arguments += ["--proof", proof]
        self.pfl(*arguments)

    def pfl(self, *arguments: str | Path) -> None:
        """Run one command of the starter kit, its output shown as it comes."""
        command = [str(PFL), *map(str, arguments)]
        environment = {
            **self.stack.environment,
            "PFL_SITE": self.stack.url,
            "PFL_TOKEN": getattr(self, "token", ""),
            "PFL_KEY": str(self.home / "team_key.pem"),  # never the user's own
        }
        code = subprocess.run(command, env=environment, cwd=self.home, check=False).returncode
        self.stack.check()
        if code:
            raise StepError(
                f"`pfl {' '.join(map(str, arguments[:2]))}` ended with code {code}; see its message above."
            )

    def serve(self) -> None:
        """Keep the site up until Ctrl-C."""
        say(f"\nThe site is at {self.stack.url} (Ctrl-C stops it). Log in with:")
        for email, password in self.passwords.items():
            role = "organizer, also at /admin/" if email != PARTICIPANT[0] else "participant"
            say(f"  {email}  {password}  ({role})")
        while True:
            time.sleep(1)
            self.stack.check()


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
    options = parser.parse_args()
    if options.data and not (options.data / "img").is_dir():
        parser.error(f"{options.data}: a folder with img/, box/ and key/ is expected")
    home = options.home.resolve()
    try:
        clear_demo_folder(home)
    except StepError as error:
        parser.error(str(error))
    demo = Demo(home, options.data and options.data.resolve(), options.port)
    for ending in (
        signal.SIGTERM,
        signal.SIGHUP,
    ):  # as Ctrl-C, lest a closed terminal leaves the site running
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

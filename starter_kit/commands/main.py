"""The entry point of `pfl`, and the table of its verbs.

A verb is the function of its name in the module of its name, or that module's `app` if it is a group of others. The
module is imported when the verb is called. The list of all verbs comes from the table, so that `pfl --help`
loads neither the libraries that the verbs need nor pydantic or rich.
"""

import os
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec

import click
from typer.core import TyperGroup
from typer.main import get_command

from starter_kit.commands.app import command_of

ABOUT = "The starter kit of the PFL-DocVQA benchmark."

VERBS = {
    "data": "Download, make, import, export and inspect data sets.",
    "base": "Write base weights for experiments.",
    "methods": "List the methods, the configs and the plug-ins that come with the kit.",
    "notebooks": "Copy the kit's notebooks to a folder, for Jupyter. Nothing is overwritten.",
    "new": "Create your own method or plug-in: a working file, a config and a test. Nothing is overwritten.",
    "plan": "Estimate a run's bytes, ε, memory and time before it starts, and suggest changes if it won't fit or rank.",
    "train": "Train a method. Writes the checkpoint, the communication log, a report and, with privacy, the signed "
    "record.",
    "sweep": "Train a config with every combination of some settings, score the runs on the validation split, and "
    "compare.",
    "federate": "Train with clients on separate machines, using Flower.",
    "evaluate": "Score a checkpoint with the evaluator's code. A run folder keeps the score for the report and "
    "`compare`.",
    "predict": "Write a checkpoint's answers to a file. The questions need no gold answers.",
    "leakage": "Attack a checkpoint: which providers was it trained on, and which hidden answers does it reveal?",
    "compare": "Print runs side by side: experiment, ANLS, accuracy, gigabytes and ε.",
    "report": "Write RUN/report.html again, from the run's settings and numbers.",
    "tensorboard": "Write a run's rounds for TensorBoard; view them with `tensorboard --logdir DIR`.",
    "conformance": "Test on synthetic data whether a private method behaves as its ε calculation assumes.",
    "privacy": "Compute ε and noise with the benchmark's own accountants, and explain the checks on a record.",
    "replay": "Show the organizers the rounds that the site drew, or repeat these rounds as they do.",
    "describe": "Draft the description of a method and, for private runs, the proof of its privacy. Nothing is "
    "overwritten.",
    "check": "Run the workers' checks on your machine, and list everything they would reject.",
    "export": "Export a run for Hugging Face (with a model card) or PEFT.",
    "convert": "Convert a pickled or sharded checkpoint into a single safetensors file.",
    "key": "Create, show and register the key that signs your training records.",
    "token": "Request a token for one training run. `pfl train` does so automatically if the site is set.",
    "challenges": "List your team's unresolved challenges, and explain them to the reviewers.",
    "submit": "Upload runs and submit them. After an interruption, the same command resumes where it stopped.",
    "submissions": "List your team's submissions with their scores and ranks, or follow one.",
    "verify": "Recompute ε, bytes, checks and ranks of a site's boards from its public files. Needs no account.",
    "version": "Print the version (recorded with every score).",
}
"""The first paragraph of each verb's help; a test compares it with the verb's module."""

# The verbs for which the extra `verify` is enough.
WITHOUT_TORCH = {"verify", "version"}


class PflGroup(TyperGroup):
    """The verbs of `VERBS`, each imported from the module of its name when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the table."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb's module and return its command; None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        from starter_kit.documents import with_addresses

        if cmd_name not in WITHOUT_TORCH and find_spec("torch") is None:
            from starter_kit.extras import kit_missing

            raise kit_missing(f"`pfl {cmd_name}` needs the whole starter kit.", "torch is not installed")
        module = import_module(f"starter_kit.commands.{cmd_name}")
        app = getattr(module, "app", None)
        command = get_command(app) if app else command_of(getattr(module, cmd_name))
        command.name, command.help = cmd_name, with_addresses(command.help or "")
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a verb. What it rejects ends the command with status 2 and without a traceback."""
        from starter_kit.console import exit_on_problem
        from starter_kit.own_files import errors_reported

        with exit_on_problem(), errors_reported():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb that `args` starts with. An unknown one is rejected with the verb that may be meant."""
        if args and args[0] not in VERBS and (alike := get_close_matches(args[0], VERBS, n=1)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{alike[0]}'?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their help, in full."""
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _print_version(ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
    """Do what `pfl version` does, as people look for it under either name."""
    if is_given:
        app.main(["version"], prog_name="pfl", standalone_mode=False)
        ctx.exit()


app = PflGroup(
    name="pfl",
    help=ABOUT,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help=VERBS["version"],
        )
    ],
    no_args_is_help=True,
    context_settings={"max_content_width": 110, "help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run `pfl` with the arguments of the process."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # A shell asks for completions: docs/starter-kit.md says how to switch that on.
    if "_PFL_COMPLETE" in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
    app(prog_name="pfl")

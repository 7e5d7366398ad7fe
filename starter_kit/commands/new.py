"""`pfl new`."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.options import wrong_option
from starter_kit.console import print_lines

METHOD = "--method"


def new(
    name: Annotated[
        str,
        typer.Argument(
            help="Name of the method or plug-in, such as my_method; a hyphen becomes an underscore."
        ),
    ],
    private: Annotated[
        bool, typer.Option("--private", help="Start with provider-level privacy and an outline of its proof.")
    ] = False,
    method: Annotated[bool, typer.Option("--method", help="A method; the default.")] = False,
    codec: Annotated[bool, typer.Option("--codec", help="A codec: how messages become bytes.")] = False,
    optimizer: Annotated[bool, typer.Option("--optimizer", help="A local optimizer.")] = False,
    hook: Annotated[bool, typer.Option("--hook", help="A correction of local gradients.")] = False,
    server_optimizer: Annotated[bool, typer.Option("--server-optimizer", help="A server optimizer.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder to write into.")] = Path(),
) -> None:
    """Create your own method or plug-in: a working file, a config and a test. Nothing is overwritten."""
    from starter_kit.scaffolding.writing import write_method

    name = name.replace("-", "_")
    given = {
        METHOD: method or private,
        "--codec": codec,
        "--optimizer": optimizer,
        "--hook": hook,
        "--server-optimizer": server_optimizer,
    }
    asked = _one_of([option for option, is_given in given.items() if is_given])
    files = write_method(name, out, private=private) if asked == METHOD else plugin_files(asked, name, out)
    test, config, proof = out / f"test_{name}.py", out / f"{name}.yaml", out / f"{name}_proof.md"
    print_lines(
        *files,
        f"Try it:   python {test}",
        f"Train it: pfl train {config} --data data/public --base base --out save/{name}",
    )
    if private:
        print_lines(f"Prove it: {proof} is an outline; submit the proof with `pfl submit --proof`")


def _one_of(asked: list[str]) -> str:
    """Return the option that was given, if any. Raises `ProblemError` for several."""
    if len(asked) > 1:
        raise wrong_option(
            "pfl new",
            "one kind of file; --private is for methods",
            ", ".join(asked),
            message="These options can't be combined.",
            next_step="Create them one after another.",
        )
    return asked[0] if asked else METHOD


def plugin_files(option: str, name: str, out: Path) -> list[Path]:
    """Write the files of a plug-in of the kind that `option` starts, and return their paths."""
    # Takes seconds to load.
    from starter_kit.scaffolding.writing import write_plugin
    from starter_kit.settings.plugin_list import KINDS

    return write_plugin(name, out, next(kind for kind in KINDS if kind.option == option))

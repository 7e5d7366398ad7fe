"""`pfl export`: a run in the formats of other libraries."""

from pathlib import Path
from typing import Annotated

import typer

from starter_kit.commands.app import new_app
from starter_kit.commands.options import BaseFolder, RunDirectory
from starter_kit.console import print_lines

app = new_app("Export a run for Hugging Face (with a model card) or PEFT.")

Out = Annotated[Path, typer.Argument(help="New folder to write.")]
License = Annotated[str, typer.Option("--license", help="License of the model, such as gpl-3.0.")]
BaseModel = Annotated[str, typer.Option(help="Name of the base model on the Hub, for the model card.")]
Data = Annotated[str, typer.Option(help="Name of the data set on the Hub, for the model card.")]


@app.command()
def hf(
    run: RunDirectory,
    out: Out,
    base: BaseFolder,
    license_: License = "",
    base_model: BaseModel = "",
    dataset: Data = "",
) -> None:
    """Write the whole model of a run for the Hugging Face Hub: weights, tokenizer, model card and public evidence."""
    from starter_kit.exporting.folders import export_hub_folder
    from starter_kit.exporting.model_card import Origin

    card = export_hub_folder(run, out, base, Origin(license_, base_model, dataset))
    print_lines(f"{card}: read it before you publish", f"Publish it: hf upload YOU/NAME {out}")


@app.command()
def peft(
    run: RunDirectory, out: Out, license_: License = "", base_model: BaseModel = "", dataset: Data = ""
) -> None:
    """Write a run's adapters in PEFT's format. `pfl convert` adds such adapters to base weights."""
    from starter_kit.exporting.folders import export_adapter
    from starter_kit.exporting.model_card import Origin

    card = export_adapter(run, out, Origin(license_, base_model, dataset))
    print_lines(f"{card}: read it before you publish", f"Publish it: hf upload YOU/NAME {out}")

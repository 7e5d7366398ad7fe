"""`pfl data synthetic` and `pfl data forms`: data sets that are drawn."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evaluator.messages.progress import OnProgress
from starter_kit.commands.data_options import (
    DEFAULT_PRIVATE,
    Clients,
    Force,
    Out,
    PartitionRule,
    PrivatePart,
    Seed,
    SeedFile,
    reject_given,
    seed_of,
    settings_that_fit,
    write_pair,
)
from starter_kit.commands.options import wrong_option

if TYPE_CHECKING:
    from starter_kit.data.summary import ImportSummary

# As many new forms of each provider as the red-team data has pages, about.
RED_FORMS = 6
# Skewed forms have a partition of their own, and their test split serves for attacks.
NOT_SKEWED = ("partition", "red_providers")


def synthetic(
    ctx: typer.Context,
    out: Out,
    seed: Seed = 7,
    seed_file: SeedFile = None,
    clients: Clients = 10,
    partition: PartitionRule = "iid",
    train_providers: Annotated[int, typer.Option(help="Providers to train on.")] = 400,
    train_pages: Annotated[int, typer.Option(help="Pages to train on, unevenly distributed.")] = 900,
    valid_pages: Annotated[
        int, typer.Option(help="Pages to validate on, half of them from unseen providers.")
    ] = 60,
    test_pages: Annotated[
        int, typer.Option(help="Secret test pages, half of them from unseen providers.")
    ] = 120,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Generate invoices from made-up providers in OUT/public and OUT/secret."""
    from starter_kit.data.synthetic import SyntheticSettings, generate

    with settings_that_fit():
        settings = SyntheticSettings(
            seed=seed_of(ctx, seed, seed_file),
            clients=clients,
            partition=partition,
            train_providers=train_providers,
            train_pages=train_pages,
            valid_pages=valid_pages,
            test_pages=test_pages,
        )
    write_pair(out, force, "Drawing pages", partial(generate, settings=settings), private=private)


def forms(
    ctx: typer.Context,
    out: Out,
    seed: Seed = 7,
    seed_file: SeedFile = None,
    clients: Clients = 10,
    partition: PartitionRule = "iid",
    providers: Annotated[
        int, typer.Option(help="Providers to train on, with two forms each unless --skewed.")
    ] = 800,
    valid_forms: Annotated[
        int, typer.Option(help="Forms to validate on, half of them from unseen providers.")
    ] = 200,
    test_forms: Annotated[
        int, typer.Option(help="Secret test forms, half of them from unseen providers.")
    ] = 600,
    red_providers: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of training providers in the splits red and red-trained, which are for attacks; as "
            "many other providers are added. 0: none.",
        ),
    ] = 0,
    skewed: Annotated[
        bool,
        typer.Option(
            "--skewed",
            help="Print each provider's name, email address and tax number on all of its forms, and make providers and "
            "clients as uneven as the competition's.",
        ),
    ] = False,
    published_size: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            max=1,
            help="With 1, as many providers, clients and documents as the competition's data has; with 0.1, a tenth of "
            "them. Implies --skewed.",
        ),
    ] = None,
    private: PrivatePart = DEFAULT_PRIVATE,
    force: Force = False,
) -> None:
    """Generate forms from made-up providers in OUT/public and OUT/secret."""
    from starter_kit.data.forms import (
        FormSettings,
        PublishedSettings,
        SkewedSettings,
        generate,
        generate_skewed,
    )
    from starter_kit.data.forms.generation import write_red_splits

    if published_size is not None:
        reject_given(
            ctx, "--published-size", "clients", "providers", "valid_forms", "test_forms", *NOT_SKEWED
        )
    elif skewed:
        reject_given(ctx, "--skewed", *NOT_SKEWED)
    seed = seed_of(ctx, seed, seed_file)
    sizes: dict[str, object] = {
        "seed": seed,
        "clients": clients,
        "providers": providers,
        "valid_forms": valid_forms,
        "test_forms": test_forms,
    }
    if skewed or published_size is not None:
        with settings_that_fit():
            uneven = (
                SkewedSettings.model_validate(sizes)
                if published_size is None
                else PublishedSettings.scaled(published_size, seed)
            )
        write_pair(out, force, "Drawing forms", partial(generate_skewed, settings=uneven), private=private)
        return
    with settings_that_fit():
        settings = FormSettings.model_validate(sizes | {"partition": partition})
    if red_providers > providers:
        raise wrong_option(
            "--red-providers", f"at most {providers}, as many as there are training providers", red_providers
        )

    def write(public: Path, secret: Path, on_progress: OnProgress) -> "ImportSummary":
        summary = generate(public, secret, settings, on_progress)
        if red_providers:
            summary.splits |= write_red_splits(secret, settings, providers=red_providers, forms=RED_FORMS)
        return summary

    write_pair(out, force, "Drawing forms", write, private=private)

"""The `pfl` command: one module per verb. `main` has the table of verbs, and imports a module when its verb is called.

Only this package and `starter_kit.console` know the command line; the libraries below take values and return values.
"""

try:
    import typer.core
except ModuleNotFoundError as error:
    # The package was installed without the kit: for the site, or by mistake.
    from starter_kit.extras import install_command, kit_missing

    verify = f" For `pfl verify` alone, `{install_command('verify')}` is enough, and much smaller."
    raise SystemExit(str(kit_missing("The starter kit is not installed.", error, verify))) from error

# Plain help loads no rich, nothing in it is cut off, and it can be copied. `rich_markup_mode=None` alone would leave
# markup in the help of options.
typer.core.HAS_RICH = False

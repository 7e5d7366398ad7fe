"""The `pfl` command: one module per verb. `main` has the table of verbs, and imports a module when its verb is called.

Only this package and `starter_kit.console` know the command line; the libraries below take values and return values.
"""

import typer.core

# Plain help loads no rich, nothing in it is cut off, and it can be copied. `rich_markup_mode=None` alone would leave
# markup in the help of options.
typer.core.HAS_RICH = False

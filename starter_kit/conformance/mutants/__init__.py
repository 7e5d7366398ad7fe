"""Private methods with one fault each, which an examination must find: the harness's own test.

Every mutant is FL-PROVIDER-DP, or client-level DP where only that has the step, with one thing wrong that was wrong in a
published library or is named in an audit. `catalog` lists them; a settings file names one as
`method: <this folder>/method.py` with `mutant: <its name>`.
"""

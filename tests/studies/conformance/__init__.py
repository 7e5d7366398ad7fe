"""How good the harness is, counted: `python -m tests.studies.conformance docs/conformance.md`.

The mutants that an examination finds, and how often one fails an honest method. Counts are added up over many sittings,
and each is of the code that made it.
"""

"""How good the harness is, counted: the mutants that an examination finds, and how often one fails an honest method.

Counts are added up over many sittings, and each is of the code that made it.
"""

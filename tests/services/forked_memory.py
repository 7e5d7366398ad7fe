"""Imported last by the process that others are forked from: its objects are left out of their garbage collections.

A collection writes to every object that it looks at, and so would copy the shared memory of all libraries into each
forked process.
"""

import gc

gc.collect()
gc.freeze()

"""The files that `pfl new` writes: a custom method that works from the start, with its config, its test and its proof.

The folders `public` and `private` contain these files, in which only the method's name is replaced.
"""

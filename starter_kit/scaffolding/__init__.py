"""The files that `pfl new` writes: a custom method or plug-in that works from the start, with its config and its test.

The folders contain these files, in which only the name is replaced: `public` and `private` those of methods, the latter
with an outline of a proof, and one for each kind of plug-in.
"""

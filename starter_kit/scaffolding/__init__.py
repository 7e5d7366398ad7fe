"""What `pfl new` writes: a method of one's own that works from the start, with its config, its test and its proof.

The folders `public` and `private` hold the files as they are written, but for the name.
"""

"""Builds the images, starts the compose file's services from them, and takes a run of each track to a rank.

Run by `make images`, as root on Linux with buildah and runc; no container engine is needed.
"""

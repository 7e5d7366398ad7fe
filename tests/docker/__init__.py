"""Tests of what is deployed: the files by their own linters, and the images' commands without containers."""

"""Runs a function on untrusted input in a process that can do little else: `evaluator.sandbox.sandbox.Sandbox`.

What the process has: the files that it was given, a folder of its own, limits of time, memory, processes and output.
What it doesn't: the environment and files of whoever started it, a network, a way to outlive it. How far the kernel
enforces that is found out at the start and reported (`Protection`); nothing is silently left out.

It knows nothing of evaluations. Linux only.
"""

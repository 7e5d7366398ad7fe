"""The starter kit: data, training methods and engines for federated document VQA, and the `pfl` command.

`starter_kit.commands` is on top: each verb of `pfl` is one module there, and leads to the libraries below.
"""

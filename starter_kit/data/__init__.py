"""Data for the benchmark: synthetic invoices, importers, the partition by provider.

Everything here ends in two data folders (see `evaluator.docvqa.dataset`): a public one with the training and
validation splits, and a secret one with the test split, which stays with the organizers.
"""

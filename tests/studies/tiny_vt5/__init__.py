"""The pre-training of the tiny VT5 that ships with the kit; `make base-weights` makes the shipped files again."""

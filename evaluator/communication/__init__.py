"""The communication log: how it is read and written, and whether it is plausible."""

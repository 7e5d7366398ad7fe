"""The privacy calculator: ε of a planned training run, by every amplification rule and accountant."""

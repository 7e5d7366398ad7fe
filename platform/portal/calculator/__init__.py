"""The privacy calculator: ε of a planned training, by every rule and accountant."""

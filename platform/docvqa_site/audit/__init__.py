"""The audit trail, and the one function that moves anything from state to state."""

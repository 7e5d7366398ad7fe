"""What the reproduction's models leak of their providers, compared with what their ε allows: docs/leakage.md."""

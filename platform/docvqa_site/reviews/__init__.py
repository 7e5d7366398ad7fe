"""Reviews of privacy proofs, and the verdicts that follow from them."""

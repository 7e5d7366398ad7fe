"""Privacy proofs as people read them: safe HTML, the pages of a PDF as images, and what changed between versions."""

"""What judges a run: it validates artifacts, recomputes ε and scores ANLS on the secret test set.

The same code runs on the workers and on a participant's machine. It knows nothing of the site.
"""

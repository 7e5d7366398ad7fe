"""The benchmark site, as participants use it: its REST API, and the credentials of a run."""

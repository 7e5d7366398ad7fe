"""The documentation on the site: the documents of this version, as pages."""

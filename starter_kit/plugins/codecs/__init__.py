"""Codecs: see `starter_kit.compression.plugin_codecs`."""

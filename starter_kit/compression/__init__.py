"""Fewer bytes on the wire: codecs that turn a vector of parameters into a message, and low-rank adapters."""

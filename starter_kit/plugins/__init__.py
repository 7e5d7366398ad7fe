"""The kit's plug-ins, one in each file: codecs, local optimizers, hooks of local training and server optimizers."""

"""Document VQA: the data formats, the VT5 model and its inference."""

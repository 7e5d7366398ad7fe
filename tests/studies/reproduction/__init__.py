"""A small task and a small base model on which the order of the published results can be measured on two CPU cores."""

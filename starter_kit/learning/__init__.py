"""Local training: the model that a client trains, its examples, and the optimizers' steps on them.

`trainable_model` owns the model and knows which of its tensors are trained, as one vector (`tensors`). `documents`
makes training examples of a dataset. `local_training` has the `Learner` that every method uses, `stacking` one that
trains many providers at once, `shampoo` an optimizer; `linear` and `cross_attention` are faster layers.
"""

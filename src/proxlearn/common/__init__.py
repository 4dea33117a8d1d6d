"""Small tools that know nothing of optimization: trees of tensors, files, seeds, checks, a
registry. Rests on `errors` alone."""

"""Tools that know nothing of optimization: batches, files, seeds, a registry. Rests on `errors`."""

"""The paper's experiments and more, one file each, training to figures. Rests on all but `cli`."""

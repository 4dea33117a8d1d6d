"""The experiments of the paper and those beyond it, one file each, from training to figures. Rests
on everything but `cli`."""

"""The command line, one file a command. Rests on everything else."""

"""What makes a GPU, or several processes, fast: captured steps, and jobs that torchrun launched.
Rests on `common`."""

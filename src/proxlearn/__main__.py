"""`python -m proxlearn` is the command line."""

from proxlearn.cli import main

main()

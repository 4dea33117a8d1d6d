"""`python -m proxlearn` is the command line."""

from proxlearn.cli.main import main

main()

"""The sections of docs/results.md, which `make_results.py` puts together."""

"""Finite MDPs: the model, families, exact answers, and files."""

"""Experiments that were planned before they were run: several matrices, one page, claims judged."""

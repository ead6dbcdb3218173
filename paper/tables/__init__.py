"""The experiments on tables: what they compute."""

"""Training loops, run directories, metrics and evaluation."""

"""Many runs: the matrix of a sweep, and processes or a Ray cluster to run it on."""

"""Deep agents: the algorithms by name, networks, and the one generic learner."""

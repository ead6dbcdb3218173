"""The paper, reproduced with ``momentum_rl``: experiments, claims with their rules, evidence."""

"""The paper's claims on deep agents: plans, runs, and what they show."""

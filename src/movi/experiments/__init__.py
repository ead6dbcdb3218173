"""The paper's experiments, declared as data: each is a frozen dataclass that can be run."""

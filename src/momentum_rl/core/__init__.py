"""The paper: targets, algorithms, values, the family, schedules; NumPy alone is imported."""

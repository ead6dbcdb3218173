"""The deep half of the report: agents with networks."""

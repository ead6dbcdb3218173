"""The tabular half of the report: planning on finite MDPs."""

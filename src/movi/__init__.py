"""movi."""

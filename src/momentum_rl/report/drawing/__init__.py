"""Figures: their looks, the kinds there are, and the way to PDF, PNG, SVG and the page."""

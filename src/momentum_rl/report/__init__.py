"""Anybody's runs, from their files to statistics, figures and one self-contained HTML page."""

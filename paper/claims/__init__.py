"""The sentences of the papers that are judged, each with its rule and its figure."""

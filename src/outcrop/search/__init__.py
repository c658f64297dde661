"""Search over the store: what a query means, how hits are ranked, and what of a text is shown."""

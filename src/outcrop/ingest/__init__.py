"""From files to rows: discover, read what is new, mask secrets, cut turns, find copies, write batches."""

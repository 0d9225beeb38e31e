"""What one unit does at full load within limits: a `Plan`, in words, as a record, and the commands that start it."""

"""Laws beyond closed forms, as numbers: gaps, waits, rounds of prompts and decodes, users in a loop, routing."""

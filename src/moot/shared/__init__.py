"""The kernel every context stands on: settings, errors, clock, symbol, texts, database. No business logic."""

"""SQL of agents: what a statement may say, and how it is rewritten so that a rule is kept."""

"""Rules that hold: what an agent wants to do is approved, changed, stopped or put before a person, and why is kept.

Also watches what runs, decides what follows an error, and keeps away from what is broken. Knows nothing of stocks:
what the desk's rules say about them is data. The door is `application.coordinator_agent.CoordinatorAgent`; alone,
without a database or a desk, `application.decision_validator.DecisionValidator`.
"""

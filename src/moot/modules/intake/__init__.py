"""Questions in people's own words: what is wanted, the plan, its steps and the answer; conversations of such turns.

The door is `application.intake_service.IntakeService`. It judges no share: equity steps are sessions of the desk.
"""

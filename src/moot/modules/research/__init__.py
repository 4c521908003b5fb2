"""Five experts: indicators and models computed in code, analysts that read them, and the evidence they were given.

The door is `application.experts`: one service per expert, each with `run`. No expert gives a trading order.
"""

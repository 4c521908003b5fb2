"""The experts: indicators and models computed in code, analysts that read them, and the evidence they were given.

The door is `container.ResearchContainer.service`, by an expert's name; each expert is a folder in `application`. No
expert gives a trading order.
"""

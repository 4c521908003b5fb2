"""Models and the web: which ones there are, every call to them on the record, within a budget.

Doors: `application/llm_service.py`, `application/speaker.py` (an agent's whole answer), `application/web_search.py`.
"""

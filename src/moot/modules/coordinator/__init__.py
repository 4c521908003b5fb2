"""The research graph, its sessions and their journal. Orchestrates; never researches, debates or judges.

The doors are `application.research_orchestration_service` (run) and `application.session_history` (look back).
"""

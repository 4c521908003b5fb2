"""One verdict on a debate, or an abstention. Never researches, never argues.

The door is `application.judge_service.JudgeService`; an agent behind `domain.verdict.VerdictAgent` does the judging.
"""

"""Bull and bear argue over what the experts found, and a resolver weighs them. Never fetches data.

The door is `application.debate_service.DebateService`; the roles it calls are ports in `domain.debate`.
"""

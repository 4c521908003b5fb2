"""Bull and bear argue over what the experts claim, and the argument is weighed. Never fetches data.

The door is `application.debate_service.DebateService`; the roles it calls are ports in `domain.debate`. An argument
is weighed in `domain.weighing`, and told from `domain.reading`.
"""

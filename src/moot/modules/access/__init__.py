"""Who may ask the desk over HTTP, for which workspace, and how often. Knows keys; knows nothing of what is asked.

The door is `application.AccessService`; `presentation.Guard` stands before every route.
"""

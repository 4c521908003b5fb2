"""The console: what people look at, made on the server from the same services as the API.

A page is a function that is given a `Page` and renders a template with it; `site.PAGES` lists them all.
"""

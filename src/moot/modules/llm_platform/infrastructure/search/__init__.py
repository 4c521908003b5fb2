"""The services that search: Bocha, an instance of SearXNG, and the demo market's own news."""

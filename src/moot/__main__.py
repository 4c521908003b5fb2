"""`python -m moot` is the command `moot`."""

from importlib import import_module

if __name__ == "__main__":
    import_module("moot.cli").main()  # by name: the floors below know nothing of the one on top

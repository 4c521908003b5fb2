"""Broken on purpose: what a desk makes of a kill, a pause, a database that is gone and a disk that is full."""

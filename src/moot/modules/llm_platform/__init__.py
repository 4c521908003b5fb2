"""The record of every model call, whoever made it. Knows sessions only by the execution context."""

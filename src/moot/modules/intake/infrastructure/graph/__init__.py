"""The graphs of intake: the coordinator that receives a question, and the way from there to its answer."""

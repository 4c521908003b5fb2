"""Who asks a model within intake: planner, researcher, processing, reporter."""

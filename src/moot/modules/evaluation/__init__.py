"""What the desk's judgements have been worth: outcomes, hit rates, calibration. Never changes a past verdict.

The door is `application.walk.WalkService`: whole companies through past months, judged by rule, then held against
what came.
"""

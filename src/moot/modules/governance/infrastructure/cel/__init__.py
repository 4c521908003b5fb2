"""Conditions in CEL: checked when a rule is saved, decided by CEL alone, found fast by what they look at.

`index` is the door, and says what can be looked up instead of asked. `environment` says what a condition may name,
`problems` why one is refused, `program` what one needs before its answer is believed and why it held.
"""

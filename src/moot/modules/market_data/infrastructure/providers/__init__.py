"""Sources of market data outside: each turns what its service sends into facts, at the service's own pace.

What they share (pace, deadline, retries, the record of calls) is in `outside`.
"""

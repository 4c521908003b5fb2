"""A synthetic market: invented companies whose whole history follows from one seed.

The seed moves the economy and its industries (`noise`), they move the companies' books (`accounts`),
the books move the prices (`prices`), and all of it makes the news and macro figures (`news`). What is told besides
is worked out from books and prices: `statements` and `ownership`.
Every random number belongs to a named stream (`noise`) and every step reads the past only: a later clock, another
range or another order of reads shows more or less of the same history, never another one.
"""

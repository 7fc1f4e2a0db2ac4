"""The 2D bandit study: train and sample every method, and compare with the exact soft policy.

`study` runs it and writes tables and arrays; `figures` and `page` show them, from files alone.
"""

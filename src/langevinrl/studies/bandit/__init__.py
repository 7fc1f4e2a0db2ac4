"""The 2D bandit study: every method trained, sampled, and held against the exact soft policy.

`study` runs it all and leaves tables and arrays; `figures` and `page` show them, from files alone.
"""

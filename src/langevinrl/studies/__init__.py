"""The paper as data and a command."""

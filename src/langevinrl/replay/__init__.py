"""Replay buffer, final observations and n-step returns."""

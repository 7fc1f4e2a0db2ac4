"""Trained policies as tables and a short compiled chain: for acting fast, and for export."""

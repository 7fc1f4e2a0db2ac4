"""Pure mathematics of drawing actions; knows no agent, network or environment."""

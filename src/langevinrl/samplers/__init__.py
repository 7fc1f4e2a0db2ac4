"""Pure mathematics of drawing actions; knows no agent, network or environment.

What moves a sample along the gradient of an energy of your own, and chooses among samples:

    from langevinrl import samplers

    points = samplers.sample(energy, start, samplers.constant_plan(1000, 1e-2), key)
"""

from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import (
    Chain,
    Plan,
    annealed_plan,
    constant_plan,
    draw,
    geometric_sigmas,
    sample,
    walk,
)
from langevinrl.samplers.particles import sample_particles

__all__ = [
    "Chain", "Plan", "annealed_plan", "best_of", "constant_plan", "draw", "geometric_sigmas",
    "sample", "sample_particles", "walk",
]  # fmt: skip

"""Samplers of actions and of any differentiable energy; they know no agent or environment.

from langevinrl import samplers

points = samplers.sample(energy, start, samplers.constant_plan(1000, 1e-2), key)
"""

from langevinrl.samplers.choose import best_of
from langevinrl.samplers.langevin import (
    Plan,
    annealed_plan,
    constant_plan,
    geometric_sigmas,
    langevin_chain,
    langevin_in_box,
    sample,
)
from langevinrl.samplers.noise import ChainNoise, draw_chain_noise
from langevinrl.samplers.particles import sample_particles

__all__ = [
    "ChainNoise", "Plan", "annealed_plan", "best_of", "constant_plan", "draw_chain_noise",
    "geometric_sigmas", "langevin_chain", "langevin_in_box", "sample", "sample_particles",
]  # fmt: skip

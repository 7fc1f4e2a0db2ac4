"""Train on an environment of your own: keep a water tank warm."""

import sys

import gymnasium as gym
import numpy as np

import langevinrl as lrl


class Boiler(gym.Env):
    """A water tank that loses heat, with a heater of 0 to 5 kW and a cost of energy."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = gym.spaces.Box(0.0, 5.0, (1,), np.float32)  # any finite bounds

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.water, self.outside = self.np_random.uniform([30, 0], [50, 20])
        return self.observe(), {}

    def step(self, action):
        self.outside += self.np_random.normal(0.0, 0.3)
        self.water += 0.8 * float(action[0]) - 0.05 * (self.water - self.outside)
        cost = abs(self.water - 40.0) / 10 + 0.05 * float(action[0])
        boiled = self.water > 90.0  # terminated: nothing follows
        return self.observe(), -cost, boiled, False, {}

    def observe(self):
        return np.array([(self.water - 40) / 10, (self.outside - 10) / 10])

    # These two methods make resuming exact; without them, episodes restart on resume.
    def state_dict(self):
        return {"state": np.array([self.water, self.outside])}

    def load_state_dict(self, arrays):
        self.water, self.outside = map(float, arrays["state"])


def make() -> gym.Env:
    """Return a new environment with a time limit."""
    return gym.wrappers.TimeLimit(Boiler(), max_episode_steps=100)


if __name__ == "__main__":
    out = sys.argv[1] if len(sys.argv) > 1 else "runs/boiler"
    model = lrl.Model("nclql-auto", make, seed=0, out=out)
    model.learn(iterations=3_000)
    observation, _ = make().reset(seed=1)
    action, _ = model.predict(observation)
    print(f"{observation} -> heat with {action[0]:.2f} kW")

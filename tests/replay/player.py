"""An environment whose frames tell which they are, for the tests of replays."""

import numpy as np

from momentum_rl.spaces import ObservationSpace, Transition

SPACE = ObservationSpace((4, 2, 3), "uint8")


class Player:
    """An environment whose frames are all different; stacks as the emulator gives them."""

    count = 0

    def __init__(self, space=SPACE):
        self.space, self.stack = space, None

    def frame(self):
        Player.count += 1
        image = np.random.default_rng(Player.count).integers(1, 256, self.space.shape[1:])
        return image.astype(np.uint8)

    def step(self, end, action, reward):
        if self.stack is None:
            self.stack = np.zeros(self.space.shape, np.uint8)
            self.stack[-1] = self.frame()
        after = np.concatenate([self.stack[1:], self.frame()[None]])
        discount = 0.0 if end == "terminated" else 0.5
        transition = Transition(self.stack, action, reward, discount, after)
        self.stack = after if end == "no" else None
        return transition, end != "no"

"""Write a family's MDP to a file: write_family.py FILE NAME STATES DISCOUNT.

A maze has 30 % walls; an inventory counts in tens of money and is cheap to hold, so that its values
(7,400 at γ = .9999) are small enough for float64 to prove 1e-6.
"""

import math
import sys

import momentum_rl
from momentum_rl.mdp.families import Inventory, Maze

file, name, count, gamma = sys.argv[1:]
states, discount = int(count), float(gamma)
family = {
    "maze": Maze(size=math.isqrt(states), walls=0.3, discount=discount),
    "inventory": Inventory(
        size=states - 1,
        lot=3,
        orders=3,
        demand=4,
        price=0.4,
        unit=0.2,
        setup=0.3,
        holding=0.1 / states,
        discount=discount,
    ),
}[name]
momentum_rl.save_mdp(family.mdp(), file)
print("{}")

"""Write a family's MDP to a file: write_family.py FILE NAME STATES DISCOUNT.

A maze has 30 % walls; an inventory is so cheap to hold that values fit into the float64 of a proof.
"""

import math
import sys

import movi
from movi.mdp.families import Inventory, Maze

file, name, count, gamma = sys.argv[1:]
states, discount = int(count), float(gamma)
family = {
    "maze": Maze(size=math.isqrt(states), walls=0.3, discount=discount),
    "inventory": Inventory(
        size=states - 1, lot=3, orders=3, demand=4, holding=1 / states, discount=discount
    ),
}[name]
movi.save_mdp(family.mdp(), file)
print("{}")

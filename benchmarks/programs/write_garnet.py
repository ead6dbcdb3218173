"""Write Garnets to a file: write_garnet.py FILE STATES ACTIONS BRANCHING DISCOUNT COUNT (or 0)."""

import sys

import movi

file, *words, discount, count = sys.argv[1:]
states, actions, branching = map(int, words)
many = int(count) or None
movi.save_mdp(
    movi.garnet(states, actions, branching, discount=float(discount), seed=0, count=many), file
)
print("{}")

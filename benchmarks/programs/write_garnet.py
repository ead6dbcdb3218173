"""Write Garnets to a file: write_garnet.py FILE STATES ACTIONS BRANCHING DISCOUNT COUNT (or 0)."""

import sys

import momentum_rl

file, *words, discount, count = sys.argv[1:]
states, actions, branching = map(int, words)
many = int(count) or None
momentum_rl.save_mdp(
    momentum_rl.garnet(states, actions, branching, discount=float(discount), seed=0, count=many),
    file,
)
print("{}")

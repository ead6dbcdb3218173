"""Transition storage, behind one interface, `momentum_rl.spaces.Replay`."""

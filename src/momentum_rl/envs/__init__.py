"""Environments behind one small interface, `momentum_rl.spaces.Environment`."""

"""Modules that map points, given what is prepared of tau: one file a network, and `encoders`, which
turn a tau into a code. Rests on `instances` and what that rests on."""

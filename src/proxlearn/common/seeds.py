"""One generator for each purpose of a seed, so that one draw never moves another."""

import hashlib

import torch
from torch import Generator


def generator_for(seed: int, purpose: str, device: torch.device | str = "cpu") -> Generator:
    """A generator of its own for each purpose ("train", "test", "starts", ...) of one seed."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return Generator(device=device).manual_seed(int.from_bytes(digest[:8]) >> 1)

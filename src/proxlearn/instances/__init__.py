"""What a tau is. Rests on `spaces` and what that rests on."""

"""The trained operator: applying it, its file, streams of taus, and those that are shipped
(`weights`). Rests on `answers` and what that rests on."""

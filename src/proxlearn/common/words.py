"""Numbers in sentences."""


def counted(count: int, what: str, several: str | None = None) -> str:
    """So many of what it is called: "1 part", "2 parts", "no parts"; `several`: where it is not
    the same with an s."""
    return f"{count or 'no'} {what if count == 1 else several or f'{what}s'}"

"""How much memory there is. What needs more is refused before any work is done: an allocator that
fails half way says nothing that helps, and a machine that swaps says nothing at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from proxlearn.errors import InputError

SHARE = 0.8  # of the memory that is free, for one piece of work
UNKNOWN = 1 << 62  # bytes, where a system does not tell: nothing is refused
CGROUP = Path("/sys/fs/cgroup")


def afford(needed: float, what: str, instead: str, device: torch.device | str = "cpu") -> None:
    """An error where work needs more bytes than there are.

    `what`: what it is that needs them, "1,000,000,000 starts"; `instead`: what to do, a clause."""
    there = SHARE * free(device)
    if needed > there:
        raise InputError(
            f"{what} would need about {size(needed)} of memory, and there are {size(there)}: "
            f"{instead}."
        )


@contextmanager
def enough(what: str, instead: str) -> Iterator[None]:
    """Within, an allocator's error is one in words: for work whose size only shows when it is
    done."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        ours = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not ours and "allocate memory" not in str(error):
            raise
        raise InputError(f"There is not enough memory for {what}: {instead}.") from error


def free(device: torch.device | str = "cpu") -> int:
    """The bytes that this process can still take, on a GPU or in the machine's memory."""
    device = torch.device(device)
    if device.type == "cuda":
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + unused
    return max(0, min(_of_machine(), _of_container(), _of_process()))


def size(count: float) -> str:
    """A number of bytes in words."""
    gigabytes = count / 1e9
    if gigabytes < 1:
        return f"{1e3 * gigabytes:,.0f} MB"
    return f"{gigabytes:,.1f} GB" if gigabytes < 100 else f"{gigabytes:,.0f} GB"


def _of_machine() -> int:
    """What no process holds."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):  # not on every system
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return UNKNOWN


def _of_container() -> int:
    """What the limit of a container leaves; files that are only cached make room."""
    with suppress(OSError, ValueError, KeyError):  # ValueError: "max", no limit
        most = int((CGROUP / "memory.max").read_text())
        taken = int((CGROUP / "memory.current").read_text())
        about = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return most - taken + int(about["inactive_file"])
    return UNKNOWN


def _of_process() -> int:
    """What a limit of this process (`ulimit -v`) leaves of its addresses."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            return most - taken
    return UNKNOWN

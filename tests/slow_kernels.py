"""Stands for the kernels of a network: slow to load, and it remembers who loaded them."""

import threading
import time

loaded_by: list[threading.Thread] = []


def compile_for(seconds: float, works: bool = True) -> None:
    time.sleep(seconds)
    if not works:
        raise RuntimeError("no such kernels")
    loaded_by.append(threading.current_thread())

# SPDX-License-Identifier: Apache-2.0
"""Threads that stand still in recursion, generators, coroutines, functions in C and code without a
file; and in one mode, a main thread that runs through functions that call each other.

usage: python_places.py still | busy

Prints the frames of all threads as the interpreter has them, in one line: {thread: [[file, line,
function]]}, innermost first. Those of the main thread are the frames below main()."""
import asyncio
import json
import linecache
import sys
import threading

START, END = threading.Barrier(10), threading.Event()


def stand():
    START.wait()
    END.wait()


def recurse(depth, then):
    return recurse(depth - 1, then) if depth else then()


def generate(then):
    for _ in range(2):
        yield then()


def größe(then):
    return list(map(lambda _: then(), [1]))


async def outer(then):
    return await inner(then)


async def inner(then):
    await asyncio.sleep(0)
    return then()


class Compared:
    def __init__(self, then):
        self.then = then

    def __lt__(self, other):
        return self.then()

    def sort(self):
        return sorted([self, self])


PLACES = [
    lambda: recurse(30, stand),
    lambda: recurse(150, stand),
    lambda: next(generate(stand)),
    lambda: größe(stand),
    lambda: asyncio.run(outer(stand)),
    lambda: Compared(stand).sort(),
    lambda: [[stand() for _ in range(1)] for _ in range(1)],
    lambda: exec("\n\n\nstand()", {"stand": stand}),
    lambda: json.loads("[{}]", object_hook=lambda _: stand()),
]


def frames(frame):
    found = []
    while frame:
        found.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    return found


def stands(thread):
    """True for this thread, and for one that sleeps in END.wait()."""
    inner = frames(thread)[:3]
    return [f[2] for f in inner] == ["wait", "wait", "stand"] and \
        linecache.getline(*inner[0][:2]).strip() == "waiter.acquire()"


def up(depth):
    """Calls down() and itself, so that frames come and go all the time."""
    if depth % 3:
        down(depth - 1)  # up-down
    elif depth:
        up(depth - 1)  # up-up


def down(depth):
    if depth:
        up(depth - 1)  # down-up


def main():
    for place in PLACES:
        threading.Thread(target=place, daemon=True).start()
    START.wait()
    own = threading.get_ident()
    while not all(t == own or stands(f) for t, f in sys._current_frames().items()):
        pass
    print(json.dumps({"0x%016x" % thread: frames(frame)
                      for thread, frame in sys._current_frames().items()}), flush=True)
    while sys.argv[1] == "busy":
        up(9)  # main-up
    END.wait()


if __name__ == "__main__":
    main()

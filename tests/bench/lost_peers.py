"""What stands where the processes of bench/peers prepare and time cases: it loads little."""

import os
import time
from contextlib import suppress

from bench.peers.pool import PREPARE, PREPARED, READY


def careless(pipe, setting):
    """A case's contestants are the words of its key: some kill the process, some take too long."""
    known = {}
    with suppress(EOFError, ConnectionError):
        pipe.send(READY)
        while True:
            what, key, without = pipe.recv()
            if key == "breaks":
                pipe.send({"key": key, "state": "failed", "failed": {"case": "no memory"}})
                continue
            if what == PREPARE:
                known[key] = [name for name in key.split() if name not in without]
            for name in known[key]:
                pipe.send(name)
                if name == "dies" or (name == "dies-late" and what != PREPARE):
                    os._exit(7)
                if name == "hangs":
                    time.sleep(60)
            state = PREPARED if what == PREPARE else "timed"
            pipe.send({"key": key, "state": state, "failed": {}, "process": os.getpid()})

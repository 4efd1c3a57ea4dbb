"""What processes of the tests are asked to do: answer, raise, die, hang."""

import os
import signal
import time

from blockbuster.errors import LaunchError, message

COUNT = [0]


def counted(number):
    """How often it was called in this process."""
    COUNT[0] += 1
    return COUNT[0]


def doubled(number):
    return 2 * number


def raising(number):
    raise ValueError(f"{number} is refused")


def dying(number):
    os.kill(os.getpid(), signal.SIGSEGV)


def leaving(number):
    os._exit(7)


def hanging(number):
    time.sleep(600)


def refusing(number):
    raise LaunchError(message(f"{number} is refused", origin="launching out", hint="give 42"))

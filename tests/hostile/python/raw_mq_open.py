# attack: open a queue of messages
# outcome: error not available in the Lockhouse sandbox: the operating system is out of reach
# control: none: queues are counted per user, and another program may have used them up
# preload: ctypes

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *arguments):
    arguments = [ctypes.c_long(argument) if type(argument) is int else argument for argument in arguments]
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


queue = b"lockhouse-%d" % os.getpid()
call(240, queue, os.O_CREAT | os.O_RDWR, 0o600, 0)
call(241, queue)

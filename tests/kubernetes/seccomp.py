"""Runs a program under a seccomp profile of a container runtime, as an unprivileged user without capabilities.

Usage: seccomp.py PROFILE USER PROGRAM [ARGUMENT]...
PROFILE is a JSON file whose default is to allow; USER is a number. Needs root and libseccomp.so.2.
"""

import ctypes
import json
import os
import sys

ALLOW = 0x7FFF0000
ERRNO = 0x00050000
PR_SET_NO_NEW_PRIVS = 38
PR_CAPBSET_DROP = 24
CAPABILITIES = 64


def main():
    profile, user, *command = sys.argv[1:]
    profile = json.load(open(profile))
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW", "the default is to allow"
    libc = ctypes.CDLL(None, use_errno=True)
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ALLOW)))
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ERRNO", rule
        for name in rule["names"]:
            number = seccomp.seccomp_syscall_resolve_name(name.encode())
            # Calls of other architectures, and of kernels that libseccomp does not know, have a negative number.
            if number >= 0:
                action = ctypes.c_uint32(ERRNO | rule["errnoRet"])
                assert seccomp.seccomp_rule_add(context, action, number, 0) == 0, name
    for capability in range(CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(int(user), int(user), int(user))
    os.setresuid(int(user), int(user), int(user))
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert seccomp.seccomp_load(context) == 0
    os.execvp(command[0], command)


main()

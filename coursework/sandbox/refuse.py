"""System calls that a student's process may not make, refused by the kernel.

The filter is set by the process itself before it runs a student's line, and cannot be
taken off: no program, no second process, no socket, no look at another process. ctypes
does not get around it.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

#: Numbers of the calls on the two machines; missing where the machine lacks the call.
CALLS: dict[str, dict[str, int]] = {
    "x86_64": {
        "fork": 57, "vfork": 58, "execve": 59, "execveat": 322, "ptrace": 101,
        "socket": 41, "connect": 42, "bind": 49, "kill": 62,
        "tkill": 200, "process_vm_readv": 310, "process_vm_writev": 311,
        "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "chroot": 161,
        "pivot_root": 155, "bpf": 321, "io_uring_setup": 425, "keyctl": 250,
        "add_key": 248, "perf_event_open": 298, "userfaultfd": 323,
        "pidfd_open": 434, "pidfd_getfd": 438, "pidfd_send_signal": 424,
        "symlink": 88, "symlinkat": 266, "sched_setscheduler": 144,
        "setpriority": 141, "process_madvise": 440,
    },
    "aarch64": {
        "execve": 221, "execveat": 281, "ptrace": 117, "socket": 198, "connect": 203,
        "bind": 200, "kill": 129, "tkill": 130,
        "process_vm_readv": 270, "process_vm_writev": 271, "unshare": 97, "setns": 268,
        "mount": 40, "umount2": 39, "chroot": 51, "pivot_root": 41, "bpf": 280,
        "io_uring_setup": 425, "keyctl": 219, "add_key": 217, "perf_event_open": 241,
        "userfaultfd": 282, "pidfd_open": 434,
        "pidfd_getfd": 438, "pidfd_send_signal": 424, 
        "symlinkat": 36, "sched_setscheduler": 119, "setpriority": 140,
        "process_madvise": 440,
    },
}  # fmt: skip
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435  # on both; its flags lie in memory that a filter cannot read
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
THREAD = 0x00010000  # flag of clone that makes a thread and not a process
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, AT_LEAST, ANY_BIT, GIVE = 0x20, 0x15, 0x35, 0x45, 0x06


def program(machine: str) -> bytes:
    """The filter, in the language of the kernel's packet filters."""
    refused = GIVE, 0, 0, REFUSE | errno.EPERM
    lines = [
        (LOAD, 0, 0, 4),  # the machine the call is made for
        (EQUAL, 1, 0, MACHINES[machine]),
        (GIVE, 0, 0, KILL),
        (LOAD, 0, 0, 0),  # the number of the call
    ]
    if machine == "x86_64":  # the calls of the x32 form have numbers of their own
        lines += [(AT_LEAST, 0, 1, 0x40000000), (GIVE, 0, 0, KILL)]
    for number in CALLS[machine].values():
        lines += [(EQUAL, 0, 1, number), refused]
    # The C library falls back on clone where clone3 is not there.
    lines += [(EQUAL, 0, 1, CLONE3), (GIVE, 0, 0, REFUSE | errno.ENOSYS)]
    lines += [(EQUAL, 0, 3, CLONE[machine]), (LOAD, 0, 0, 16)]
    lines += [(ANY_BIT, 1, 0, THREAD), refused, (GIVE, 0, 0, ALLOW)]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def refuse_calls() -> bool:
    """Set the filter for this process; False where the system has no such filters."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        return False
    code = ctypes.create_string_buffer(program(machine))
    size = (len(code) - 1) // 8

    class Filter(ctypes.Structure):
        _fields_ = [("size", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    whole = Filter(size, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, by_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0):
        return False
    return not libc.prctl(set_filter, by_filter, ctypes.byref(whole), 0, 0)


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it has ended."""
    if sys.platform == "linux":
        set_death_signal, killed = 1, 9
        ctypes.CDLL(None).prctl(set_death_signal, killed, 0, 0, 0)

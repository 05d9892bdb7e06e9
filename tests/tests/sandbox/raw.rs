//! System calls made directly, past everything that Python says about them. Python outside succeeds at each.

use std::process::Command;

use lockhouse_tests::{Finished, Lockhouse, Table, ensure};

const CALL: &str = "\
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if type(a) is int else a for a in arguments])
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
path = ctypes.create_string_buffer(b'/etc/passwd')
";

/// Refused with an error that the code can catch.
const REFUSED: &[(&str, &str)] = &[
    ("open", "call(2, path, 0)"),
    ("openat", "call(257, -100, path, 0)"),
    ("openat2", "call(437, -100, path, ctypes.create_string_buffer(24), 24)"),
    ("stat", "call(4, path, ctypes.create_string_buffer(512))"),
    ("newfstatat", "call(262, -100, path, ctypes.create_string_buffer(512), 0)"),
    ("statx", "call(332, -100, path, 0, 0x7ff, ctypes.create_string_buffer(512))"),
    ("access", "call(21, path, 4)"),
    (
        "readlink",
        "call(89, ctypes.create_string_buffer(b'/proc/self/exe'), ctypes.create_string_buffer(512), 512)",
    ),
    ("socket AF_INET", "call(41, 2, 1, 0)"),
    ("socket AF_UNIX", "call(41, 1, 1, 0)"),
    ("socket AF_NETLINK", "call(41, 16, 3, 0)"),
    (
        "execve",
        "call(59, ctypes.create_string_buffer(b'/bin/true'), (ctypes.c_char_p * 2)(b'true', None), (ctypes.c_char_p * 1)(None))",
    ),
    ("fork", "if call(57) == 0: call(60, 0)\nos.wait()"),
    ("clone without CLONE_THREAD", "if call(56, 17, 0, 0, 0, 0) == 0: call(60, 0)\nos.wait()"),
    ("kill the parent with 0", "call(62, os.getppid(), 0)"),
    ("tgkill the parent with 0", "call(234, os.getppid(), os.getppid(), 0)"),
    ("pidfd_open of the parent", "call(434, os.getppid(), 0)"),
    ("memfd_create", "call(319, path, 0)"),
    ("mmap of writable and executable memory", "call(9, 0, 4096, 7, 0x22, -1, 0)"),
    ("mmap of executable memory", "call(9, 0, 4096, 5, 0x22, -1, 0)"),
    ("mprotect to executable", "call(10, call(9, 0, 4096, 3, 0x22, -1, 0), 4096, 5)"),
    ("prlimit", "call(302, 0, 7, (ctypes.c_ulong * 2)(16, 16), 0)"),
    ("prctl", "call(157, 15, path, 0, 0, 0)"),
    ("setpriority", "call(141, 0, 0, 0)"),
    ("shmget", "call(29, 0, 4096, 0o1600)"),
    ("inotify_init1", "call(294, 0)"),
    ("timerfd_create", "call(283, 0, 0)"),
    ("sysinfo", "call(99, ctypes.create_string_buffer(512))"),
    (
        "getdents64 of a socket or file",
        "call(217, call(257, -100, ctypes.create_string_buffer(b'/'), 0o200000), ctypes.create_string_buffer(4096), 4096)",
    ),
];

/// Only an attack makes these: the worker dies.
const FATAL: &[(&str, &str)] = &[
    ("ptrace", "call(101, 0, 0, 0, 0)"),
    (
        "process_vm_readv",
        "b = ctypes.create_string_buffer(8)\nv = (ctypes.c_ulong * 2)(ctypes.addressof(b), 8)\ncall(310, os.getpid(), v, 1, v, 1, 0)",
    ),
    ("unshare", "call(272, 0)"),
    ("personality", "call(135, 0xffffffff)"),
    (
        "name_to_handle_at",
        "h = (ctypes.c_uint * 40)(128)\ncall(303, -100, ctypes.create_string_buffer(b'/'), h, ctypes.byref(ctypes.c_int()), 0)",
    ),
];

fn lockhouse() -> Lockhouse {
    Lockhouse::new().config("[python]\npreload = [\"ctypes\"]\n")
}

fn control(code: &str) -> Result<(), String> {
    let control = Finished::of(Command::new("/usr/bin/python3").args(["-c", code]), b"");
    ensure(control.status == Some(0), control)
}

#[tokio::test]
async fn system_calls_that_leave_the_sandbox_are_refused_and_the_run_goes_on() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("system calls that are refused");
    for (name, code) in REFUSED {
        let code = format!("{CALL}{code}");
        table.row(format!("{name}: control outside"), control(&code));
        let (head, attempt) = code.split_at(CALL.len());
        let attempt = attempt.replace('\n', "\n  ");
        let caught = format!("{head}try:\n  {attempt}\n  r = 'done'\nexcept OSError as e:\n  r = e.errno\nr");
        let answer = session.run_code("python", &caught).await;
        let refused = answer["value"].as_u64().is_some_and(|errno| [1, 13, 22, 38].contains(&errno));
        table.row(*name, ensure(answer["status"] == "ok" && refused, &answer));
    }
    table.finish();
}

#[tokio::test]
async fn system_calls_that_only_an_attack_makes_end_the_worker_and_say_so() {
    let lockhouse = lockhouse();
    let session = lockhouse.serve().await;
    let mut table = Table::new("system calls that kill");
    for (name, code) in FATAL {
        let code = format!("{CALL}{code}");
        table.row(format!("{name}: control outside"), control(&code));
        let answer = session.run_code("python", &code).await;
        let named = answer["error"]["message"].as_str().is_some_and(|message| message.contains("SIGSYS"));
        table.row(*name, ensure(answer["status"] == "killed" && named, &answer));
    }
    table.finish();
}

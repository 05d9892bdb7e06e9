//! Reads the data of the seccomp filters of workers and of service processes, and evaluates their rules for the tests.
#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

pub(crate) mod interpreter;

use std::collections::BTreeSet;

use serde_json::Value;

const COMMON: &str = include_str!("../../../seccomp/common.json");

const ZYGOTE: &str = include_str!("../../../seccomp/zygote.json");

/// The supported architectures, each with its additional seccomp rules as JSON.
pub(crate) const ARCHITECTURES: [(&str, &str); 2] = [
    ("x86_64", include_str!("../../../seccomp/x86_64.json")),
    ("aarch64", include_str!("../../../seccomp/aarch64.json")),
];

/// The kinds of service processes, each with the rules of its seccomp filter as JSON.
pub(crate) const SERVICES: [(&str, &str); 2] = [
    ("front", include_str!("../../../seccomp/front.json")),
    ("signer", include_str!("../../../seccomp/signer.json")),
];

/// System calls that the seccomp filter of workers must never allow, each group with what its calls do: they open files or
/// sockets, start or reach processes, or change mounts or the restrictions of the process itself.
pub(crate) const NEVER_ALLOWED: &[(&str, &str)] = &[
    (
        "opens files",
        "open openat openat2 creat open_by_handle_at name_to_handle_at memfd_create memfd_secret",
    ),
    ("asks about files", "stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2"),
    ("asks about files", "readlink readlinkat getdents getdents64 getcwd chdir fchdir"),
    (
        "changes files",
        "unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat mkdir mkdirat",
    ),
    ("changes files", "rmdir mknod mknodat chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat"),
    ("changes files", "truncate ftruncate fallocate utimensat setxattr fsetxattr lsetxattr"),
    ("opens sockets", "socket connect bind listen accept accept4 setsockopt"),
    ("sends descriptors", "sendmsg recvmsg sendmmsg recvmmsg"),
    ("starts programs", "execve execveat fork vfork"),
    ("reaches processes", "kill tkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_getfd"),
    ("reaches processes", "pidfd_send_signal ptrace process_vm_readv process_vm_writev process_madvise kcmp"),
    (
        "reaches processes",
        "process_mrelease move_pages migrate_pages wait4 waitid setpgid setsid setpriority",
    ),
    ("reaches processes", "sched_setaffinity sched_setscheduler sched_setparam sched_setattr ioprio_set"),
    ("shares memory", "shmget shmat shmctl shmdt semget semop semctl semtimedop"),
    ("sends messages", "msgget msgsnd msgrcv msgctl mq_open mq_unlink"),
    ("watches files", "inotify_init inotify_init1 fanotify_init"),
    (
        "changes its user",
        "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid capset",
    ),
    ("changes its bounds", "prctl arch_prctl seccomp personality setrlimit unshare setns modify_ldt"),
    ("changes its bounds", "landlock_create_ruleset landlock_add_rule landlock_restrict_self"),
    ("mounts", "mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick"),
    ("mounts", "mount_setattr swapon swapoff quotactl quotactl_fd"),
    (
        "changes the host",
        "init_module finit_module delete_module kexec_load kexec_file_load reboot syslog acct",
    ),
    (
        "changes the host",
        "settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname iopl ioperm",
    ),
    ("makes code", "pkey_mprotect remap_file_pages map_shadow_stack"),
    ("is wide surface", "bpf perf_event_open userfaultfd add_key request_key keyctl io_uring_setup"),
    ("is wide surface", "io_uring_enter io_uring_register io_setup io_submit vmsplice splice tee"),
    ("is wide surface", "copy_file_range sendfile set_mempolicy mbind"),
];

/// Returns the seccomp filters that are common to all architectures, with the additional rules of one architecture.
pub(crate) fn merged(architecture: &str) -> Value {
    let mut document: Value = serde_json::from_str(COMMON).unwrap();
    let (_, own) = ARCHITECTURES.iter().find(|(name, _)| *name == architecture).unwrap();
    let own: Value = serde_json::from_str(own).unwrap();
    for (filter, rules) in own.as_object().unwrap() {
        let merged = document[filter]["filter"].as_array_mut().unwrap();
        merged.extend(rules.as_array().unwrap().iter().cloned());
    }
    document
}

/// Returns the rules of `zygote.json` that apply to one architecture: the common rules and its own.
pub(crate) fn zygote(architecture: &str) -> Vec<Value> {
    let rules: Value = serde_json::from_str(ZYGOTE).unwrap();
    ["common", architecture].iter().flat_map(|list| rules[list].as_array().unwrap().clone()).collect()
}

/// Returns the seccomp filter of a service process on one architecture, in the form of [`merged`].
pub(crate) fn service(kind: &str, architecture: &str) -> Value {
    let (_, rules) = SERVICES.iter().find(|(name, _)| *name == kind).unwrap();
    let rules: Value = serde_json::from_str(rules).unwrap();
    let lists = ["common", architecture].into_iter();
    let rules: Vec<Value> = lists.flat_map(|list| rules[list].as_array().unwrap().clone()).collect();
    serde_json::json!({"allowed": {"filter": rules}})
}

/// Returns the seccomp filters of x86-64: the common rules and those of this architecture.
pub(crate) fn document() -> Value {
    merged("x86_64")
}

pub(crate) fn rules(filter: &str) -> Vec<Value> {
    document()[filter]["filter"].as_array().unwrap().clone()
}

pub(crate) fn syscall(rule: &Value) -> &str {
    rule["syscall"].as_str().unwrap()
}

pub(crate) fn names(filter: &str) -> BTreeSet<String> {
    rules(filter).iter().map(|rule| syscall(rule).to_owned()).collect()
}

pub(crate) fn conditions(rule: &Value) -> &[Value] {
    rule.get("args").map_or(&[], |args| args.as_array().unwrap())
}

/// Returns whether a condition of a seccomp rule holds for these system call arguments, as seccompiler's documentation
/// defines it.
pub(crate) fn holds(condition: &Value, arguments: [u64; 6]) -> bool {
    let argument = arguments[condition["index"].as_u64().unwrap() as usize];
    let width = if condition["type"] == "dword" { u64::from(u32::MAX) } else { u64::MAX };
    let value = condition["val"].as_u64().unwrap();
    let mask = match &condition["op"] {
        Value::String(op) if op == "eq" => u64::MAX,
        op => {
            op["masked_eq"].as_u64().unwrap_or_else(|| panic!("{op} is new: teach this test what it means"))
        }
    };
    argument & mask & width == value & mask & width
}

/// Returns whether the seccomp filter of x86-64 allows a system call with these arguments.
pub(crate) fn allows(name: &str, arguments: [u64; 6]) -> bool {
    allows_in(&document(), name, arguments)
}

/// Returns whether the seccomp filter in `document` allows a system call with these arguments.
pub(crate) fn allows_in(document: &Value, name: &str, arguments: [u64; 6]) -> bool {
    let rules = document["allowed"]["filter"].as_array().unwrap();
    let mut of_that_name = rules.iter().filter(|rule| syscall(rule) == name);
    of_that_name.any(|rule| conditions(rule).iter().all(|condition| holds(condition, arguments)))
}

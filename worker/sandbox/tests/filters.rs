//! Checks the data of the worker's seccomp filters: no forbidden system call is allowed, and each rule states a reason.

mod seccomp;

use std::collections::BTreeSet;

use seccomp::{NEVER_ALLOWED, allows, conditions, document, names, rules, syscall};
use serde_json::Value;

const PROT_READ: u64 = libc::PROT_READ as u64;
const PROT_WRITE: u64 = libc::PROT_WRITE as u64;
const PROT_EXEC: u64 = libc::PROT_EXEC as u64;
const PRIVATE: u64 = libc::MAP_PRIVATE as u64;
const ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;

#[test]
fn every_filter_does_what_its_name_says() {
    let actions = |name: &str| {
        let document = document();
        let filter = &document[name];
        (filter["match_action"].clone(), filter.get("mismatch_action").cloned())
    };
    let errno = |errno: i32| serde_json::json!({ "errno": errno });
    assert_eq!(actions("attacks"), ("kill_process".into(), None));
    assert_eq!(actions("no_clone3"), (errno(libc::ENOSYS), None));
    assert_eq!(actions("allowed"), ("allow".into(), Some(errno(libc::EPERM))));
    assert_eq!(names("no_clone3"), BTreeSet::from(["clone3".to_owned()]));
    assert_eq!(document().as_object().unwrap().len(), 3, "a filter that this test does not know");
}

#[test]
fn every_rule_says_why() {
    let mut silent = Vec::new();
    for filter in ["attacks", "no_clone3", "allowed"] {
        for rule in rules(filter) {
            let parts = std::iter::once(&rule).chain(conditions(&rule));
            if !parts
                .into_iter()
                .all(|part| part["comment"].as_str().is_some_and(|why| !why.trim().is_empty()))
            {
                silent.push(format!("{filter}: {rule}"));
            }
        }
    }
    assert!(silent.is_empty(), "without a reason:\n{}", silent.join("\n"));
}

#[test]
fn no_system_call_is_both_allowed_and_an_attack() {
    let (allowed, attacks) = (names("allowed"), names("attacks"));
    assert_eq!(allowed.intersection(&attacks).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn no_rule_is_there_twice() {
    for filter in ["attacks", "no_clone3", "allowed"] {
        let mut seen = BTreeSet::new();
        for rule in rules(filter) {
            let condition = |c: &Value| format!("{} {} {} {}", c["index"], c["type"], c["op"], c["val"]);
            let what: Vec<String> = conditions(&rule).iter().map(condition).collect();
            assert!(seen.insert((syscall(&rule).to_owned(), what)), "{filter}: {rule}");
        }
    }
}

#[test]
fn what_is_checked_in_one_rule_is_checked_in_all_of_that_call() {
    let allowed = rules("allowed");
    let free: BTreeSet<&str> =
        allowed.iter().filter(|rule| conditions(rule).is_empty()).map(syscall).collect();
    let checked: BTreeSet<&str> =
        allowed.iter().filter(|rule| !conditions(rule).is_empty()).map(syscall).collect();
    // seccompiler treats a rule without conditions as permission for all arguments, whatever other rules say.
    assert_eq!(free.intersection(&checked).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn what_is_never_allowed_is_not_allowed() {
    let allowed = names("allowed");
    for (what_it_does, never) in NEVER_ALLOWED {
        for name in never.split(' ') {
            assert!(!allowed.contains(name), "{name} is allowed, and {what_it_does}");
        }
    }
}

#[test]
fn calls_that_depend_on_their_arguments_have_them_checked() {
    let needed: &[(&str, &[u64])] = &[
        ("mmap", &[2, 3]),
        ("mprotect", &[2]),
        ("mremap", &[3]),
        ("madvise", &[2]),
        ("clone", &[0]),
        ("socketpair", &[0, 1, 2]),
        ("sendto", &[3, 4]),
        ("recvfrom", &[3, 4]),
        ("ioctl", &[1]),
        ("fcntl", &[1]),
        ("tgkill", &[0]),
        ("prlimit64", &[0, 2]),
        ("sched_getaffinity", &[0]),
        ("futex", &[1]),
    ];
    for (name, indices) in needed {
        for rule in rules("allowed").iter().filter(|rule| syscall(rule) == *name) {
            let checked: BTreeSet<u64> =
                conditions(rule).iter().map(|condition| condition["index"].as_u64().unwrap()).collect();
            assert!(indices.iter().all(|index| checked.contains(index)), "{indices:?} of {rule}");
        }
    }
}

#[test]
fn memory_is_private_anonymous_and_never_executable() {
    for protection in 0..8 {
        let may = protection & PROT_EXEC == 0;
        assert_eq!(allows("mprotect", [0, 4096, protection, 0, 0, 0]), may, "mprotect {protection}");
        assert_eq!(
            allows("mmap", [0, 4096, protection, PRIVATE | ANONYMOUS, 0, 0]),
            may,
            "mmap {protection}"
        );
    }
    let read_write = PROT_READ | PROT_WRITE;
    let refused = [
        ("shared", libc::MAP_SHARED | libc::MAP_ANONYMOUS),
        ("shared and validated", libc::MAP_SHARED_VALIDATE | libc::MAP_ANONYMOUS),
        ("of a file", libc::MAP_PRIVATE),
        ("locked", libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_LOCKED),
        ("of huge pages", libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB),
        ("growing down", libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_GROWSDOWN),
    ];
    for (what, flags) in refused {
        assert!(!allows("mmap", [0, 4096, read_write, flags as u64, 0, 0]), "{what}");
    }
    // Bits without a defined meaning.
    for bit in 3..32 {
        assert!(!allows("mprotect", [0, 4096, 1 << bit, 0, 0, 0]), "protection bit {bit}");
    }
}

#[test]
fn a_clone_is_a_thread_of_this_process() {
    let thread = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    let thread = u64::from(thread.cast_unsigned());
    assert!(allows("clone", [thread, 0, 0, 0, 0, 0]));
    for bit in 0..64 {
        assert!(!allows("clone", [thread ^ (1 << bit), 0, 0, 0, 0, 0]), "bit {bit} changed");
    }
    assert!(!allows("clone", [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]), "fork");
}

#[test]
fn arguments_that_would_be_holes_are_refused() {
    let (unix, stream) = (libc::AF_UNIX as u64, libc::SOCK_STREAM as u64);
    assert!(allows("socketpair", [unix, stream, 0, 0, 0, 0]));
    let refused: &[(&str, [u64; 6])] = &[
        ("socketpair", [libc::AF_INET as u64, stream, 0, 0, 0, 0]),
        ("socketpair", [unix, libc::SOCK_DGRAM as u64, 0, 0, 0, 0]),
        ("socketpair", [unix, libc::SOCK_SEQPACKET as u64, 0, 0, 0, 0]),
        ("sendto", [3, 0, 0, 0, 0x1000, 16]),
        ("sendto", [3, 0, 0, libc::MSG_OOB as u64, 0, 0]),
        ("recvfrom", [3, 0, 0, 0, 0x1000, 16]),
        ("ioctl", [0, libc::TIOCSTI, 0, 0, 0, 0]),
        ("ioctl", [0, libc::TIOCLINUX, 0, 0, 0, 0]),
        ("fcntl", [3, libc::F_SETOWN as u64, 0, 0, 0, 0]),
        ("fcntl", [3, libc::F_NOTIFY as u64, 0, 0, 0, 0]),
        ("fcntl", [3, libc::F_SETLEASE as u64, 0, 0, 0, 0]),
        ("tgkill", [1, 1, 9, 0, 0, 0]),
        ("prlimit64", [0, libc::RLIMIT_AS.into(), 0x1000, 0, 0, 0]),
        ("prlimit64", [1, libc::RLIMIT_AS.into(), 0, 0, 0, 0]),
        ("sched_getaffinity", [1, 0, 0, 0, 0, 0]),
        ("madvise", [0, 4096, libc::MADV_DONTFORK as u64, 0, 0, 0]),
        ("madvise", [0, 4096, libc::MADV_HWPOISON as u64, 0, 0, 0]),
    ];
    for (name, arguments) in refused {
        assert!(!allows(name, *arguments), "{name} {arguments:x?}");
    }
}

/// Checks that the number that stands for the worker's process id in the filter data is used for nothing else.
/// Lockhouse replaces it by the process id wherever it occurs in the compiled filter.
#[test]
fn the_stand_in_for_the_pid_stands_for_nothing_else() {
    const STAND_IN: u64 = 0x7fff_ffff;
    let mut places = Vec::new();
    for filter in ["attacks", "no_clone3", "allowed"] {
        for rule in rules(filter) {
            for condition in conditions(&rule) {
                let mask = condition["op"]["masked_eq"].as_u64().unwrap_or_default();
                let value = condition["val"].as_u64().unwrap();
                let halves = [value & 0xffff_ffff, value >> 32, mask & 0xffff_ffff, mask >> 32];
                if halves.contains(&STAND_IN) {
                    places.push((syscall(&rule).to_owned(), condition["index"].as_u64().unwrap()));
                }
            }
        }
    }
    assert_eq!(places, [("tgkill".to_owned(), 0)]);
}

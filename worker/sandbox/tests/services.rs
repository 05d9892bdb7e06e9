//! Checks the seccomp filters of service processes: their data allows nothing that it must not, and the compiled programs of
//! every architecture return the result that the data defines, and kill the process at any other call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod seccomp;

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_sandbox::{Layers, SandboxError, ServiceKind, ServiceSandbox};
use seccomp::interpreter::{ALLOW, Call, KILL_PROCESS, NUMBERS, number_of, run};
use seccomp::{ARCHITECTURES, NEVER_ALLOWED, SERVICES, allows_in, conditions, service, syscall};
use serde_json::Value;

/// System calls that workers may make and a service process may not, each group with what its calls do.
const NEVER_OF_A_SERVICE: &[(&str, &str)] = &[
    ("starts a process or a thread", "clone clone3 set_robust_list rseq set_tid_address"),
    ("signals", "tgkill"),
    ("opens a descriptor", "socketpair pipe pipe2 epoll_create epoll_create1 eventfd2 dup dup2 dup3"),
    ("opens a descriptor", "timerfd_create signalfd4 pidfd_open inotify_init1 fanotify_init memfd_create"),
    ("waits for other processes", "wait4 waitid"),
    ("reads or sets limits", "prlimit64 getrlimit setrlimit"),
    ("tells about its user", "getuid geteuid getgid getegid getppid getgroups"),
    ("closes other descriptors", "close_range"),
];

/// What a worker must never do and a service may: its kind, the call and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("front", "accept4", "it serves an inherited listener, and can make no other"),
    ("front", "setsockopt", "timeouts of connections; the options are listed"),
    ("front", "recvmsg", "it takes connections from the engine; it can pass on none"),
    ("signer", "recvmsg", "it takes the sockets of fronts from the engine; it can pass on none"),
];

const AUDIT_NUMBERS: [(&str, u32); 2] = [("x86_64", 0xc000_003e), ("aarch64", 0xc000_00b7)];

/// Returns the compiled program of each kind of service on each architecture, with the number of the architecture in the
/// kernel's audit records.
fn programs() -> Vec<(&'static str, &'static str, u32, &'static [u8])> {
    macro_rules! program {
        ($architecture:literal, $kind:literal) => {
            include_bytes!(concat!(env!("OUT_DIR"), "/", $architecture, ".", $kind, ".bpf")).as_slice()
        };
    }
    let [(x86_64, audit_x86_64), (aarch64, audit_aarch64)] = AUDIT_NUMBERS;
    vec![
        ("front", x86_64, audit_x86_64, program!("x86_64", "front")),
        ("signer", x86_64, audit_x86_64, program!("x86_64", "signer")),
        ("front", aarch64, audit_aarch64, program!("aarch64", "front")),
        ("signer", aarch64, audit_aarch64, program!("aarch64", "signer")),
    ]
}

fn rules(document: &Value) -> &[Value] {
    document["allowed"]["filter"].as_array().unwrap()
}

/// Returns the data of each kind of service on each architecture.
fn documents() -> Vec<(&'static str, &'static str, Value)> {
    let kinds = SERVICES.into_iter().map(|(kind, _)| kind);
    kinds
        .flat_map(|kind| {
            ARCHITECTURES.map(|(architecture, _)| (kind, architecture, service(kind, architecture)))
        })
        .collect()
}

#[test]
fn what_is_never_allowed_is_not_allowed() {
    for (kind, architecture, document) in documents() {
        let allowed: BTreeSet<&str> = rules(&document).iter().map(syscall).collect();
        for (what_it_does, never) in NEVER_ALLOWED.iter().chain(NEVER_OF_A_SERVICE) {
            for name in never.split(' ') {
                let is_exception = EXCEPTIONS.iter().any(|(of, call, _)| (*of, *call) == (kind, name));
                assert!(
                    !allowed.contains(name) || is_exception,
                    "{kind} {architecture}: {name} is allowed, and {what_it_does}"
                );
            }
        }
    }
}

#[test]
fn every_rule_says_why_and_is_there_once() {
    for (kind, architecture, document) in documents() {
        let (mut seen, mut free, mut checked) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for rule in rules(&document) {
            let has_reason =
                |part: &Value| part["comment"].as_str().is_some_and(|why| !why.trim().is_empty());
            assert!(has_reason(rule) && conditions(rule).iter().all(has_reason), "{kind}: no reason: {rule}");
            let condition = |it: &Value| format!("{} {} {} {}", it["index"], it["type"], it["op"], it["val"]);
            let what: Vec<String> = conditions(rule).iter().map(condition).collect();
            let list = if what.is_empty() { &mut free } else { &mut checked };
            list.insert(syscall(rule));
            assert!(seen.insert((syscall(rule), what)), "{kind} {architecture}: twice: {rule}");
        }
        // A rule without conditions would permit all arguments, whatever other rules of the call say.
        assert_eq!(
            free.intersection(&checked).collect::<Vec<_>>(),
            Vec::<&&str>::new(),
            "{kind} {architecture}"
        );
    }
}

#[test]
fn memory_is_private_anonymous_and_never_executable() {
    let private = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    for (kind, _, document) in documents() {
        let maps = |protection, flags| allows_in(&document, "mmap", [0, 4096, protection, flags, 0, 0]);
        for bits in 0..=u64::from(u8::MAX) {
            let may = bits <= (libc::PROT_READ | libc::PROT_WRITE) as u64;
            assert_eq!(maps(bits, private), may, "{kind}: mmap {bits}");
            let protects = allows_in(&document, "mprotect", [0, 4096, bits, 0, 0, 0]);
            assert_eq!(protects, may && kind == "front", "{kind}: mprotect {bits}");
        }
        for flags in [libc::MAP_SHARED | libc::MAP_ANONYMOUS, libc::MAP_PRIVATE, libc::MAP_LOCKED] {
            assert!(!maps(3, flags as u64), "{kind}: flags {flags:#x}");
        }
        assert!(!maps(3, private | libc::MAP_HUGETLB as u64), "{kind}: huge pages");
        assert!(!maps(3, private | libc::MAP_GROWSDOWN as u64), "{kind}: growing down");
    }
}

#[test]
fn arguments_that_would_be_holes_are_refused() {
    let (tcp, socket) = (libc::SOL_TCP as u64, libc::SOL_SOCKET as u64);
    let (address, fast_open, out_of_band) = (0x1000, libc::MSG_FASTOPEN as u64, libc::MSG_OOB as u64);
    let option = |level, name: i32| [5, level, name as u64, 0x1000, 4, 0];
    let cases: &[(&str, &str, [u64; 6], bool)] = &[
        ("send", "sendto", [5, 0, 1, libc::MSG_NOSIGNAL as u64, 0, 0], true),
        ("connect by sending", "sendto", [5, 0, 1, fast_open, address, 16], false),
        ("send to an address", "sendto", [5, 0, 1, 0, address, 16], false),
        ("send out-of-band", "sendto", [5, 0, 1, out_of_band, 0, 0], false),
        ("receive", "recvfrom", [5, 0, 1, 0, 0, 0], true),
        ("look at the first byte", "recvfrom", [5, 0, 1, libc::MSG_PEEK as u64, 0, 0], true),
        ("receive out-of-band", "recvfrom", [5, 0, 1, out_of_band, 0, 0], false),
        ("receive descriptors", "recvmsg", [5, address, libc::MSG_CMSG_CLOEXEC as u64, 0, 0, 0], true),
        ("receive messages out-of-band", "recvmsg", [5, address, out_of_band, 0, 0, 0], false),
        ("read errors kept for a socket", "recvmsg", [5, address, libc::MSG_ERRQUEUE as u64, 0, 0, 0], false),
        ("end writing", "shutdown", [5, libc::SHUT_WR as u64, 0, 0, 0, 0], true),
        ("end a listener", "shutdown", [5, libc::SHUT_RD as u64, 0, 0, 0, 0], false),
        ("end a listener both ways", "shutdown", [5, libc::SHUT_RDWR as u64, 0, 0, 0, 0], false),
        ("no delay", "setsockopt", option(tcp, libc::TCP_NODELAY), true),
        ("kernel TLS", "setsockopt", option(tcp, libc::TCP_ULP), false),
        ("repair a connection", "setsockopt", option(tcp, libc::TCP_REPAIR), false),
        ("fast open", "setsockopt", option(tcp, libc::TCP_FASTOPEN_CONNECT), false),
        ("a program for packets", "setsockopt", option(socket, libc::SO_ATTACH_FILTER), false),
        ("a mark for routing", "setsockopt", option(socket, libc::SO_MARK), false),
        ("the peer's user", "getsockopt", option(socket, libc::SO_PEERCRED), true),
        ("a descriptor of the peer's process", "getsockopt", option(socket, 77), false),
        ("memory shared with a connection", "getsockopt", option(tcp, 35), false),
        ("an owner of signals", "fcntl", [5, libc::F_SETOWN as u64, 1, 0, 0, 0], false),
        ("a listener that blocks", "fcntl", [5, libc::F_SETFL as u64, 0, 0, 0, 0], false),
        ("a terminal's input", "ioctl", [0, libc::TIOCSTI, address, 0, 0, 0], false),
        ("another futex", "futex", [address, libc::FUTEX_CMP_REQUEUE_PI as u64, 0, 0, 0, 0], false),
        ("a lock with priority", "futex", [address, libc::FUTEX_LOCK_PI as u64, 0, 0, 0, 0], false),
        ("wait", "futex", [address, (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as u64, 0, 0, 0, 0], true),
        ("merge memory", "madvise", [0, 4096, libc::MADV_MERGEABLE as u64, 0, 0, 0], false),
        ("move memory to a place", "mremap", [0, 4096, 4096, libc::MREMAP_FIXED as u64 | 1, 0, 0], false),
    ];
    let front = service("front", "x86_64");
    for (what, name, arguments, may) in cases {
        assert_eq!(allows_in(&front, name, *arguments), *may, "{what}: {name} {arguments:x?}");
    }
    let signer = service("signer", "x86_64");
    for (what, name, arguments, _) in cases.iter().filter(|(.., may)| !may) {
        assert!(!allows_in(&signer, name, *arguments), "signer: {what}: {name} {arguments:x?}");
    }
}

#[test]
fn a_process_with_a_second_thread_does_not_enter_the_sandbox() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let second = std::thread::spawn(move || receiver.recv());
    let refused = ServiceSandbox::prepare(ServiceKind::Front, Layers::NONE, None, &[]).unwrap_err();
    assert!(matches!(refused, SandboxError::Threads), "{refused}");
    drop(sender);
    assert!(second.join().unwrap().is_err(), "the thread was there until the end");
}

/// Returns arguments that match a rule of the call, and those that differ from them in one bit.
fn arguments_near(document: &Value, name: &str) -> Vec<[u64; 6]> {
    let of_that_name = rules(document).iter().filter(|rule| syscall(rule) == name);
    let mut near = vec![[0; 6]];
    for rule in of_that_name {
        let mut matching = [0; 6];
        for condition in conditions(rule) {
            matching[condition["index"].as_u64().unwrap() as usize] = condition["val"].as_u64().unwrap();
        }
        near.push(matching);
        for position in 0..6 {
            near.extend((0..64).map(|bit| {
                let mut other = matching;
                other[position] ^= 1_u64 << bit;
                other
            }));
        }
    }
    near
}

#[test]
fn the_programs_do_what_the_data_says_and_kill_otherwise() {
    for (kind, architecture, audit, program) in programs() {
        let document = service(kind, architecture);
        let names: BTreeMap<u32, &str> = rules(&document)
            .iter()
            .map(|rule| (number_of(syscall(rule), architecture), syscall(rule)))
            .collect();
        println!(
            "{kind} {architecture}: {} reachable calls, {} instructions",
            names.len(),
            program.len() / 8
        );
        for number in 0..NUMBERS {
            let name = names.get(&number).copied().unwrap_or_default();
            for arguments in arguments_near(&document, name) {
                let expected = if allows_in(&document, name, arguments) { ALLOW } else { KILL_PROCESS };
                let found = run(program, &Call { number, architecture: audit, arguments });
                assert_eq!(found, expected, "{kind} {architecture}: {number} {name} {arguments:x?}");
            }
            let x32 = Call { number: number | 0x4000_0000, architecture: audit, arguments: [0; 6] };
            assert_eq!(run(program, &x32), KILL_PROCESS, "{kind} {architecture}: x32 {number}");
            // i386, arm, riscv64, and each of the other architectures.
            for foreign in [0x4000_0003, 0x4000_0028, 0xc000_00f3, 0xc000_003e, 0xc000_00b7, 0] {
                let call = Call { number, architecture: foreign, arguments: [0; 6] };
                let killed = run(program, &call) == KILL_PROCESS;
                assert!(killed || foreign == audit, "{kind} {architecture}: {foreign:#x} {number}");
            }
        }
    }
}

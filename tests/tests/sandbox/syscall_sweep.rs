//! Makes every system call, by number, in a sandboxed worker. The kernel must permit exactly the calls that the seccomp
//! filter's data lists.

use std::collections::{BTreeMap, BTreeSet};

use lockhouse_protocol::Exit;
use lockhouse_tests::{BareZygote, End, native_worker};
use seccompiler::{TargetArch, compile_from_json};
use serde_json::{Value, json};

/// The upper bound (exclusive) of the system call numbers that are tried. It is far above the largest number of an
/// existing system call.
pub(super) const NUMBERS_END: u32 = 600;
const X32: u32 = 0x4000_0000;
/// The numbers of `uretprobe` and `uprobe`, which the kernel exempts from seccomp. These calls have an effect only
/// where a tracer has set a probe. On other architectures, the numbers here match no call.
pub(super) const SECCOMP_EXEMPT: [u32; 2] =
    if cfg!(target_arch = "x86_64") { [335, 336] } else { [u32::MAX, u32::MAX] };
/// System calls that would block forever if all their arguments were 0, so they get an invalid first argument.
const BLOCKING: [&str; 2] = ["select", "pselect6"];
pub(super) const SIGSYS: i32 = nix::sys::signal::Signal::SIGSYS as i32;

fn merged() -> Value {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../worker/seccomp");
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let mut document = read("common");
    for (filter, rules) in read(std::env::consts::ARCH).as_object().unwrap() {
        let merged = document[filter]["filter"].as_array_mut().unwrap();
        merged.extend(rules.as_array().unwrap().iter().cloned());
    }
    document
}

/// Returns the number of the system call with this name on this machine's architecture, as seccompiler knows it.
pub(super) fn number_of(name: &str) -> u32 {
    let filter = json!({"one": {"match_action": "allow", "mismatch_action": "kill_process", "filter": [{"syscall": name}]}});
    let target = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let program = compile_from_json(filter.to_string().as_bytes(), target).unwrap().remove("one").unwrap();
    program.iter().filter(|step| step.code == 0x15).map(|step| step.k).nth(1).unwrap()
}

/// Returns the permitted system calls by number. Each has its name, and arguments that the filter's first rule for the
/// call permits, as numbers separated by spaces.
fn allowed() -> BTreeMap<u32, (String, String)> {
    let document = merged();
    let mut calls = BTreeMap::new();
    for rule in document["allowed"]["filter"].as_array().unwrap() {
        let name = rule["syscall"].as_str().unwrap();
        let mut arguments = [0_i64; 6];
        for condition in rule["args"].as_array().into_iter().flatten() {
            arguments[condition["index"].as_u64().unwrap() as usize] = condition["val"].as_i64().unwrap();
        }
        if BLOCKING.contains(&name) {
            arguments[0] = -1;
        }
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        calls.entry(number_of(name)).or_insert_with(|| (name.to_owned(), arguments.join(" ")));
    }
    calls
}

/// Returns whether the kernel executed the system call, instead of returning the seccomp filter's error or killing the
/// process.
fn was_reached(end: &End) -> bool {
    let refused = [libc::EPERM, libc::ENOSYS].map(|errno| End::Value((-errno).to_string()));
    !refused.contains(end) && *end != End::Exited(Exit::Signal(SIGSYS))
}

#[test]
fn the_kernel_permits_exactly_the_listed_system_calls() {
    let zygote = BareZygote::start(&native_worker(), &[], None);
    let allowed = allowed();
    let mut reached = BTreeMap::new();
    for number in 0..NUMBERS_END {
        let arguments = allowed.get(&number).map_or("0 0 0 0 0 0", |(_, arguments)| arguments);
        // This call needs the worker's own pid as its argument. The filter's data has a placeholder for it.
        let is_own_pid = allowed.get(&number).is_some_and(|(name, _)| name == "tgkill");
        let end = zygote.run(&format!("call {number} {arguments}"));
        if was_reached(&end) || is_own_pid {
            reached.insert(number, end);
        }
    }
    let exempt = BTreeSet::from(SECCOMP_EXEMPT);
    let found: BTreeSet<u32> = reached.keys().copied().filter(|number| !exempt.contains(number)).collect();
    let listed: BTreeSet<u32> = allowed.keys().copied().collect();
    let names: Vec<&str> = allowed.values().map(|(name, _)| name.as_str()).collect();
    println!("{} reachable system calls of {NUMBERS_END} numbers: {}", listed.len(), names.join(" "));
    let surplus: Vec<String> =
        found.difference(&listed).map(|number| format!("{number}: {:?}", reached[number])).collect();
    let missing: Vec<&str> = listed.difference(&found).map(|number| allowed[number].0.as_str()).collect();
    assert!(surplus.is_empty() && missing.is_empty(), "reached: {surplus:?}, not reached: {missing:?}");
}

#[test]
fn system_calls_of_other_architectures_kill_the_worker() {
    let zygote = BareZygote::start(&native_worker(), &[], None);
    let control = BareZygote::start(&native_worker(), &["--layers", "limits"], None);
    let mut kinds = vec![("x32", X32, "call")];
    if cfg!(target_arch = "x86_64") {
        // 20 is the number of getpid in that architecture.
        let end = control.run("int80 20");
        assert!(was_reached(&end) || end == End::Value((-libc::ENOSYS).to_string()), "control: {end:?}");
        kinds.push(("i386", 0, "int80"));
    } else {
        println!("left out: this machine has no second kind of system calls");
    }
    for (kind, bit, way) in kinds {
        for number in 0..NUMBERS_END {
            let end = zygote.run(&format!("{way} {}", number | bit));
            assert_eq!(end, End::Exited(Exit::Signal(SIGSYS)), "{kind} {number}");
        }
    }
}

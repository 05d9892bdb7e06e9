//! Interprets the compiled seccomp filters of every architecture. For each system call number, the two programs of a
//! worker together must return the result that the filter data defines. The first program alone must do so for the
//! zygote, which has no second one.
//!
//! The filter for aarch64 is tested only in this way, not on a machine of that architecture.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on panics")]

mod seccomp;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use seccomp::interpreter::{ALLOW, Call, KILL_PROCESS, NUMBERS, number_of, run};
use seccomp::{allows_in, merged, syscall};
use serde_json::Value;

macro_rules! programs {
    ($architecture:literal) => {
        [
            include_bytes!(concat!(env!("OUT_DIR"), "/", $architecture, ".zygote.bpf")),
            include_bytes!(concat!(env!("OUT_DIR"), "/", $architecture, ".worker.bpf")),
        ]
    };
}

/// The two seccomp programs of a worker, as BPF instructions: the one that it inherits from the zygote, and its own.
type Programs = [&'static [u8]; 2];

const PROGRAMS: [(&str, u32, Programs); 2] =
    [("x86_64", 0xc000_003e, programs!("x86_64")), ("aarch64", 0xc000_00b7, programs!("aarch64"))];

const EPERM: u32 = 0x0005_0000 | libc::EPERM as u32;
const ENOSYS: u32 = 0x0005_0000 | libc::ENOSYS as u32;
/// The bits of a result that are its action (`SECCOMP_RET_ACTION_FULL`).
const ACTION: u32 = 0xffff_0000;
/// The maximum number of system calls that a filter may allow. docs/security/sandbox.md lists them.
const REACHABLE_MAX: usize = 60;

/// Returns the combined result of a worker's two seccomp programs for a system call. The kernel runs all programs, and
/// takes the result whose action comes first in the order kill, errno, allow.
fn verdict(programs: Programs, call: &Call) -> u32 {
    let severity =
        |result: &u32| [KILL_PROCESS, EPERM & ACTION, ALLOW].iter().position(|it| *it == result & ACTION);
    let results = programs.map(|program| run(program, call));
    results
        .into_iter()
        .min_by_key(|result| severity(result).expect("an action that the filters use"))
        .unwrap()
}

/// Returns the numbers and names of all system calls in the rules of the filter `filter`, such as `allowed`, for an
/// architecture.
fn named(filter: &str, architecture: &str) -> BTreeMap<u32, String> {
    let rules = merged(architecture)[filter]["filter"].as_array().unwrap().clone();
    rules.iter().map(|rule| (number_of(syscall(rule), architecture), syscall(rule).to_owned())).collect()
}

#[test]
fn every_number_gets_the_verdict_of_the_data() {
    for (architecture, audit, programs) in PROGRAMS {
        let (allowed, attacks) = (named("allowed", architecture), named("attacks", architecture));
        let clone3 = number_of("clone3", architecture);
        let document = merged(architecture);
        for number in 0..NUMBERS {
            let call = Call { number, architecture: audit, arguments: [0; 6] };
            let expected = match (allowed.get(&number), attacks.contains_key(&number)) {
                (Some(name), _) if allows_in(&document, name, call.arguments) => ALLOW,
                (_, true) => KILL_PROCESS,
                _ if number == clone3 => ENOSYS,
                _ => EPERM,
            };
            assert_eq!(
                verdict(programs, &call),
                expected,
                "{architecture}: {number} {:?}",
                allowed.get(&number)
            );
        }
        let names: BTreeSet<&String> = allowed.values().collect();
        println!("{architecture}: {} reachable system calls: {names:?}", names.len());
        assert!(names.len() <= REACHABLE_MAX, "{architecture}: {}", names.len());
    }
}

#[test]
fn another_architecture_is_fatal_whatever_the_call() {
    // i386, arm, riscv64, and each of the other architectures.
    for (architecture, audit, programs) in PROGRAMS {
        for foreign in [0x4000_0003, 0x4000_0028, 0xc000_00f3, 0xc000_003e, 0xc000_00b7, 0] {
            for number in 0..NUMBERS {
                let call = Call { number, architecture: foreign, arguments: [0; 6] };
                let killed = verdict(programs, &call) == KILL_PROCESS;
                assert!(killed || foreign == audit, "{architecture}: {foreign:#x} {number}");
            }
        }
    }
}

#[test]
fn x32_calls_are_fatal() {
    for (architecture, audit, programs) in PROGRAMS {
        for number in 0..NUMBERS {
            let call = Call { number: number | 0x4000_0000, architecture: audit, arguments: [0; 6] };
            assert_eq!(verdict(programs, &call), KILL_PROCESS, "{architecture}: {number}");
        }
    }
}

#[test]
fn the_programs_fit_into_the_kernel() {
    for (architecture, _, programs) in PROGRAMS {
        for program in programs {
            let steps = program.len() / 8;
            println!("{architecture}: {steps} instructions");
            assert!(program.len().is_multiple_of(8) && steps <= 4096, "{architecture}: {steps}");
        }
    }
}

#[test]
fn a_zygote_forks_and_a_worker_does_not() {
    const FORK: u64 = (libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD) as u64;
    for (architecture, audit, programs) in PROGRAMS {
        let number = number_of("clone", architecture);
        let call = Call { number, architecture: audit, arguments: [FORK, 0, 0, 0, 0, 0] };
        assert_eq!((run(programs[0], &call), verdict(programs, &call)), (ALLOW, EPERM), "{architecture}");
    }
}

#[test]
fn the_zygote_may_do_what_its_data_adds_and_nothing_else() {
    for (architecture, audit, [program, _]) in PROGRAMS {
        let (document, allowed) = (merged(architecture), named("allowed", architecture));
        let zygote: Vec<(u32, Value)> = seccomp::zygote(architecture)
            .into_iter()
            .map(|rule| (number_of(syscall(&rule), architecture), rule))
            .collect();
        for number in 0..NUMBERS {
            let call = Call { number, architecture: audit, arguments: [0; 6] };
            let adds = |(named, rule): &(u32, Value)| {
                *named == number
                    && seccomp::conditions(rule).iter().all(|it| seccomp::holds(it, call.arguments))
            };
            let name = allowed.get(&number);
            let expected = name.is_some_and(|name| allows_in(&document, name, call.arguments))
                || zygote.iter().any(adds);
            assert_eq!(run(program, &call) == ALLOW, expected, "{architecture}: {number} {name:?}");
        }
    }
}

/// Generates system call arguments that are equal or close to the values in the filter's rules. For these, a rule with
/// a wrong mask or width would give a wrong result.
fn arguments(document: &Value) -> impl Strategy<Value = [u64; 6]> + use<> {
    let rules = document["allowed"]["filter"].as_array().unwrap();
    let conditions = rules.iter().flat_map(seccomp::conditions);
    let mut interesting: Vec<u64> = conditions.map(|condition| condition["val"].as_u64().unwrap()).collect();
    let zygote = seccomp::zygote("x86_64");
    let conditions = zygote.iter().flat_map(seccomp::conditions);
    interesting.extend(conditions.map(|condition| condition["val"].as_u64().unwrap()));
    interesting.extend([0, 1, u64::MAX]);
    let near = (prop::sample::select(interesting), prop::option::of(0_u32..64));
    let near = near.prop_map(|(value, bit)| bit.map_or(value, |bit| value ^ (1 << bit)));
    prop::array::uniform6(prop_oneof![4 => near, 1 => any::<u64>()])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn arguments_are_judged_as_the_data_says(
        which in any::<prop::sample::Index>(), arguments in arguments(&merged("x86_64"))
    ) {
        for (architecture, audit, programs) in PROGRAMS {
            let document = merged_once(architecture);
            let calls = checked_once(architecture);
            let (number, name) = &calls[which.index(calls.len())];
            let call = Call { number: *number, architecture: audit, arguments };
            let expected = if allows_in(document, name, arguments) { ALLOW } else { EPERM };
            prop_assert_eq!(verdict(programs, &call), expected, "{} {} {:x?}", architecture, name, arguments);
        }
    }
}

fn merged_once(architecture: &str) -> &'static Value {
    static BOTH: std::sync::LazyLock<BTreeMap<&str, Value>> =
        std::sync::LazyLock::new(|| PROGRAMS.map(|(name, ..)| (name, merged(name))).into());
    &BOTH[architecture]
}

/// Returns the numbers and names of all system calls that the filter of an architecture allows, perhaps only with
/// certain arguments. They are computed once, because the property test needs them for each case.
fn checked_once(architecture: &str) -> &'static [(u32, String)] {
    static BOTH: std::sync::LazyLock<BTreeMap<&str, Vec<(u32, String)>>> = std::sync::LazyLock::new(|| {
        PROGRAMS.map(|(name, ..)| (name, named("allowed", name).into_iter().collect())).into()
    });
    &BOTH[architecture]
}

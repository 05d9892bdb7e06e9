//! Compiles seccomp filters from JSON data into BPF programs. A part of the build scripts of the crates with such filters:
//! those of workers, and those of sandboxed upstream servers.
//!
//! The data is an object of named filters in the format of seccompiler, with a reason for every rule. Each system call may
//! be in one filter only. A filter without checks of arguments needs no `mismatch_action`.
//!
//! A program finds the range of a system call by binary search for its number. seccompiler generates the instructions
//! that check the arguments of one call.

use std::collections::BTreeMap;
use std::error::Error;

use seccompiler::{BpfProgram, TargetArch, compile_from_json, sock_filter};
use serde_json::{Map, Value, json};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// Named filters.
pub(crate) type Filters = Map<String, Value>;

/// Supported architectures, each with its number in the kernel's audit records (`AUDIT_ARCH_*`).
pub(crate) const ARCHITECTURES: [(&str, u32); 2] = [("x86_64", 0xc000_003e), ("aarch64", 0xc000_00b7)];

/// BPF instruction codes and seccomp return values, from `linux/bpf_common.h` and `linux/seccomp.h`.
const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const KILL_PROCESS: u32 = 0x8000_0000;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
/// Offsets, in `struct seccomp_data`, of the system call number and of the architecture.
const CALL_NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// First number of the x32 calls of x86-64, a separate ABI that is never used here. No other architecture has numbers
/// this high.
const X32_CALLS: u32 = 0x4000_0000;

/// Reads a file with rules, which has an object. `folder` is relative to the crate that is built.
pub(crate) fn read(folder: &str, name: &str) -> Fallible<Map<String, Value>> {
    Ok(serde_json::from_slice(&std::fs::read(format!("{folder}/{name}.json"))?)?)
}

/// Compiles a complete program. It kills the process if the architecture of a call is not `audit` (`AUDIT_ARCH_*`), since
/// the numbers of the rules do not apply to it. Its results are the action `x32` for an x32 call, and the action `others`
/// for a call that is in no filter.
pub(crate) fn program(
    (architecture, audit): (&str, u32),
    filters: &Filters,
    x32: &Value,
    others: &Value,
) -> Fallible<BpfProgram> {
    let verdicts = verdicts(filters, TargetArch::try_from(architecture)?)?;
    let mut program = vec![
        instruction(LOAD_WORD, 0, 0, ARCHITECTURE),
        instruction(JUMP_IF_EQUAL, 1, 0, audit),
        instruction(RETURN, 0, 0, KILL_PROCESS),
        instruction(LOAD_WORD, 0, 0, CALL_NUMBER),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32_CALLS),
    ];
    program.extend(answer(x32)?);
    program.extend(search(&ranges(verdicts, answer(others)?)));
    Ok(program)
}

/// Compiles a program that decides about some system calls only, each by its own program, and allows all others. It does
/// not check the architecture.
pub(crate) fn partial_program(verdicts: BTreeMap<u32, BpfProgram>) -> Fallible<BpfProgram> {
    let mut program = vec![instruction(LOAD_WORD, 0, 0, CALL_NUMBER)];
    program.extend(search(&ranges(verdicts, answer(&json!("allow"))?)));
    Ok(program)
}

/// Encodes a program for a little-endian kernel.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    program.iter().flat_map(instruction_bytes).collect()
}

/// Returns the BPF program whose result is this action.
pub(crate) fn answer(action: &Value) -> Fallible<BpfProgram> {
    Ok(vec![instruction(RETURN, 0, 0, value_of(action)?)])
}

/// Maps the number of each system call in the JSON data to the BPF program that decides about it. The program
/// ends with a seccomp return value.
fn verdicts(filters: &Filters, target: TargetArch) -> Fallible<BTreeMap<u32, BpfProgram>> {
    let mut verdicts = BTreeMap::new();
    for filter in filters.values() {
        let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for rule in filter["filter"].as_array().ok_or("a list of rules is needed")? {
            let name = rule["syscall"].as_str().ok_or("a rule without a call")?;
            rule["comment"].as_str().ok_or_else(|| format!("a rule of {name} has no reason"))?;
            by_name.entry(name).or_default().push(rule);
        }
        for (name, rules) in by_name {
            let is_checked = rules.iter().any(|rule| rule.get("args").is_some());
            let steps = match is_checked {
                true => one_filter(&filter["match_action"], &filter["mismatch_action"], &rules, target)?,
                false => answer(&filter["match_action"])?,
            };
            if verdicts.insert(number_of(name, target)?, steps).is_some() {
                return Err(format!("{name} is in two filters").into());
            }
        }
    }
    Ok(verdicts)
}

/// Compiles the rules of one system call with seccompiler. The result of the program is the action `matched` if a rule
/// matches the arguments of the call, and `otherwise` if none does. The program loads the system call number, and does
/// not check the architecture.
pub(crate) fn one_filter(
    matched: &Value,
    otherwise: &Value,
    rules: &[&Value],
    target: TargetArch,
) -> Fallible<BpfProgram> {
    let filter = json!({"one": {"match_action": matched, "mismatch_action": otherwise, "filter": rules}});
    let program = compile_from_json(filter.to_string().as_bytes(), target)?.remove("one");
    let program = program.ok_or("seccompiler gave no program")?;
    // The architecture is checked once, at the beginning of the filter.
    let (check, rest) = program.split_at_checked(3).ok_or("seccompiler's program is too short")?;
    match check {
        [load, _, _] if (load.code, load.k) == (LOAD_WORD, ARCHITECTURE) => Ok(rest.to_vec()),
        _ => Err("seccompiler's program does not begin with a check of the architecture".into()),
    }
}

/// Returns the number of a system call. seccompiler keeps its table of numbers private, so the number is read from the
/// first comparison of a program that seccompiler generates.
pub(crate) fn number_of(name: &str, target: TargetArch) -> Fallible<u32> {
    let program = one_filter(&json!("allow"), &json!("kill_process"), &[&json!({"syscall": name})], target)?;
    let compared = program.iter().filter(|step| step.code == JUMP_IF_EQUAL).map(|step| step.k).next();
    compared.ok_or_else(|| format!("{name} has no number").into())
}

fn value_of(action: &Value) -> Fallible<u32> {
    match (action.as_str(), action["errno"].as_u64()) {
        (Some("allow"), _) => Ok(ALLOW),
        (Some("kill_process"), _) => Ok(KILL_PROCESS),
        (_, Some(errno @ 1..=4095)) => Ok(ERRNO | errno as u32),
        _ => Err(format!("an action that is not known: {action}").into()),
    }
}

/// Divides all system call numbers into ranges, so that the same program decides about all calls of a range. Each range
/// has its first number and its program. Numbers that are not in `verdicts` get the program `others`.
fn ranges(verdicts: BTreeMap<u32, BpfProgram>, others: BpfProgram) -> Vec<(u32, BpfProgram)> {
    let mut ranges = vec![(0, others.clone())];
    for (number, steps) in verdicts {
        if ranges.last().is_some_and(|(first, _)| *first == number) {
            ranges.pop();
        }
        ranges.push((number, steps));
        ranges.push((number + 1, others.clone()));
    }
    // Neighbours with the same verdict become one range. The fewer instructions, the less time each worker takes to
    // install the filter.
    ranges.dedup_by(|later, earlier| later.1 == earlier.1);
    ranges
}

/// Generates a binary search for the range that contains the number in the accumulator.
fn search(ranges: &[(u32, BpfProgram)]) -> BpfProgram {
    let [(_, steps)] = ranges else {
        let (lower, upper) = ranges.split_at(ranges.len() / 2);
        let below = search(lower);
        let first = upper[0].0;
        // A comparison jumps by at most 255 instructions, an unconditional jump by any number.
        let mut program = match u8::try_from(below.len()) {
            Ok(length) => vec![instruction(JUMP_IF_AT_LEAST, length, 0, first)],
            Err(_) => {
                vec![instruction(JUMP_IF_AT_LEAST, 0, 1, first), instruction(JUMP, 0, 0, below.len() as u32)]
            }
        };
        program.extend(below);
        program.extend(search(upper));
        return program;
    };
    steps.clone()
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn instruction_bytes(step: &sock_filter) -> [u8; 8] {
    let ([c0, c1], [k0, k1, k2, k3]) = (step.code.to_le_bytes(), step.k.to_le_bytes());
    [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
}

//! Compiles the seccomp filters of each architecture from the JSON data in `seccomp/`. A part of the build script.
//!
//! `common.json` holds what a worker may do, with a reason for every rule. `ARCHITECTURE.json` adds the system calls
//! that exist on one architecture only. `zygote.json` adds what the zygote needs, and what a worker needs until it has
//! entered its sandbox. Two seccomp programs confine each worker; for each system call, the stricter result applies:
//!
//! - `ARCHITECTURE.zygote.bpf` allows what any of these files allows. The zygote installs it once, and its workers
//!   inherit it.
//! - `ARCHITECTURE.worker.bpf` refuses what only `zygote.json` allows. Each worker installs it.
//!
//! The kernel compiles a program when it is installed, which takes longer than all other layers of a worker together.
//! So the program that each worker installs is short.
//!
//! Each program finds the range of a system call by binary search for its number. seccompiler generates the
//! instructions that check the arguments of one call.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use seccompiler::{BpfProgram, TargetArch, compile_from_json, sock_filter};
use serde_json::{Value, json};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Supported architectures, each with its number in the kernel's audit records (`AUDIT_ARCH_*`).
const ARCHITECTURES: [(&str, u32); 2] = [("x86_64", 0xc000_003e), ("aarch64", 0xc000_00b7)];

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

/// Compiles the filters into the directory `out`.
pub(crate) fn compile(out: &Path) -> Fallible<()> {
    println!("cargo::rerun-if-changed=../seccomp");
    for (architecture, audit) in ARCHITECTURES {
        let target = TargetArch::try_from(architecture)?;
        let (filters, zygote) = (merge(architecture)?, zygote_rules(architecture)?);
        let programs = [
            ("zygote", zygote_program(&filters, &zygote, target, audit)?),
            ("worker", worker_program(&filters, &zygote, target)?),
        ];
        for (name, program) in programs {
            let bytes: Vec<u8> = program.iter().flat_map(instruction_bytes).collect();
            std::fs::write(out.join(format!("{architecture}.{name}.bpf")), bytes)?;
        }
    }
    Ok(())
}

/// Compiles the program that the zygote installs: it allows the system calls of workers and of the zygote. It kills the
/// process if the architecture of a call is not `audit` (`AUDIT_ARCH_*`), or if it is an x32 call.
fn zygote_program(filters: &Value, zygote: &[Value], target: TargetArch, audit: u32) -> Fallible<BpfProgram> {
    let mut filters = filters.clone();
    let allowed = filters["allowed"]["filter"].as_array_mut().ok_or("a list of rules is needed")?;
    for rule in zygote {
        if rule.get("args").is_none() {
            allowed.retain(|other| other["syscall"] != rule["syscall"]);
        }
        allowed.push(rule.clone());
    }
    let mut program = vec![
        instruction(LOAD_WORD, 0, 0, ARCHITECTURE),
        instruction(JUMP_IF_EQUAL, 1, 0, audit),
        instruction(RETURN, 0, 0, KILL_PROCESS),
        instruction(LOAD_WORD, 0, 0, CALL_NUMBER),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32_CALLS),
        instruction(RETURN, 0, 0, KILL_PROCESS),
    ];
    program.extend(search(&ranges(verdicts(&filters, target)?, refused(&filters)?)));
    Ok(program)
}

/// Compiles the program that each worker installs. For the system calls of `zygote.json`, only the rules for workers
/// apply. About all other calls, the zygote's program alone decides.
fn worker_program(filters: &Value, zygote: &[Value], target: TargetArch) -> Fallible<BpfProgram> {
    let allowed = &filters["allowed"];
    let mut verdicts = BTreeMap::new();
    for rule in zygote {
        let name = rule["syscall"].as_str().ok_or("a rule without a call")?;
        let rules = allowed["filter"].as_array().ok_or("a list of rules is needed")?;
        let rules: Vec<&Value> = rules.iter().filter(|rule| rule["syscall"] == name).collect();
        let steps = match rules.is_empty() {
            true => refused(filters)?,
            false => one_filter(&allowed["match_action"], &allowed["mismatch_action"], &rules, target)?,
        };
        verdicts.insert(number_of(name, target)?, steps);
    }
    let mut program = vec![instruction(LOAD_WORD, 0, 0, CALL_NUMBER)];
    program.extend(search(&ranges(verdicts, vec![instruction(RETURN, 0, 0, ALLOW)])));
    Ok(program)
}

/// Returns the BPF program for all system calls that no rule allows. Its result is the error that the filter `allowed`
/// names as its `mismatch_action`.
fn refused(filters: &Value) -> Fallible<BpfProgram> {
    Ok(vec![instruction(RETURN, 0, 0, value_of(&filters["allowed"]["mismatch_action"])?)])
}

fn read(name: &str) -> Fallible<Value> {
    Ok(serde_json::from_slice(&std::fs::read(format!("../seccomp/{name}.json"))?)?)
}

/// Returns the rules of `zygote.json` that apply to one architecture: the common rules and its own.
fn zygote_rules(architecture: &str) -> Fallible<Vec<Value>> {
    let rules = read("zygote")?;
    let list = |name: &str| rules[name].as_array().cloned().ok_or("zygote.json lacks a list of rules");
    Ok([list("common")?, list(architecture)?].concat())
}

/// Returns the filters of `common.json`, extended by the rules of one architecture's file.
fn merge(architecture: &str) -> Fallible<Value> {
    let mut filters = read("common")?;
    for (name, rules) in read(architecture)?.as_object().ok_or("an object is needed")? {
        let filter = filters.get_mut(name).and_then(|filter| filter["filter"].as_array_mut());
        let filter = filter.ok_or_else(|| format!("{architecture}.json: there is no filter {name}"))?;
        filter.extend(rules.as_array().ok_or("a list of rules is needed")?.iter().cloned());
    }
    Ok(filters)
}

/// Maps the number of each system call in the JSON data to the BPF program that decides about it. The program
/// ends with a seccomp return value.
fn verdicts(filters: &Value, target: TargetArch) -> Fallible<BTreeMap<u32, BpfProgram>> {
    let mut verdicts = BTreeMap::new();
    for filter in filters.as_object().ok_or("an object is needed")?.values() {
        let mut by_name: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for rule in filter["filter"].as_array().ok_or("a list of rules is needed")? {
            by_name.entry(rule["syscall"].as_str().ok_or("a rule without a call")?).or_default().push(rule);
        }
        for (name, rules) in by_name {
            let is_checked = rules.iter().any(|rule| rule.get("args").is_some());
            let steps = match is_checked {
                true => one_filter(&filter["match_action"], &filter["mismatch_action"], &rules, target)?,
                false => vec![instruction(RETURN, 0, 0, value_of(&filter["match_action"])?)],
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
fn one_filter(
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
fn number_of(name: &str, target: TargetArch) -> Fallible<u32> {
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

/// Encodes an instruction for a little-endian kernel.
fn instruction_bytes(step: &sock_filter) -> [u8; 8] {
    let ([c0, c1], [k0, k1, k2, k3]) = (step.code.to_le_bytes(), step.k.to_le_bytes());
    [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
}

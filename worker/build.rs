//! Compiles the system-call filter of each architecture from the data in `seccomp/`.
//!
//! `common.json` holds three filters, each with a reason for every rule; `ARCHITECTURE.json` adds the calls that only
//! one architecture has. seccompiler compiles each filter by itself, since each has one action. Linked into one program, in
//! [`ORDER`], a filter without an opinion passes the call on to the next one, and the last one refuses.

use std::error::Error;
use std::path::Path;

use seccompiler::{BpfProgram, TargetArch, compile_from_json, sock_filter};
use serde_json::{Map, Value};

const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];
/// Attacks kill; what is behind a pointer is denied so that libc does without; the rest is allowed or refused.
const ORDER: [&str; 3] = ["attacks", "no_clone3", "allowed"];

/// From `linux/bpf_common.h` and `linux/seccomp.h`.
const LOAD_WORD: u16 = 0x20;
const JUMP: u16 = 0x05;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
const KILL_PROCESS: u32 = 0x8000_0000;
const ALLOW: u32 = 0x7fff_0000;
/// Where `struct seccomp_data` holds the number of the call.
const CALL_NUMBER: u32 = 0;
/// The x32 calls of x86-64: an interface of its own, which nothing here speaks. No architecture has others above.
const X32_CALLS: u32 = 0x4000_0000;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=seccomp");
    let out = std::env::var("OUT_DIR")?;
    for architecture in ARCHITECTURES {
        let program = compile(architecture)?;
        let bytes: Vec<u8> = program.iter().flat_map(instruction_bytes).collect();
        std::fs::write(Path::new(&out).join(format!("{architecture}.bpf")), bytes)?;
    }
    Ok(())
}

fn compile(architecture: &str) -> Result<BpfProgram, Box<dyn Error>> {
    let document = Value::Object(merge(architecture)?);
    let target = TargetArch::try_from(architecture)?;
    let mut filters = compile_from_json(document.to_string().as_bytes(), target)?;
    let mut program = vec![
        instruction(LOAD_WORD, 0, 0, CALL_NUMBER),
        instruction(JUMP_IF_AT_LEAST, 0, 1, X32_CALLS),
        instruction(RETURN, 0, 0, KILL_PROCESS),
    ];
    for (index, name) in ORDER.into_iter().enumerate() {
        let mut filter = filters.remove(name).ok_or_else(|| format!("no filter {name}"))?;
        if index + 1 < ORDER.len() {
            pass_on(&mut filter);
        }
        program.extend(filter);
    }
    if !filters.is_empty() {
        return Err(format!("filters that nobody links: {:?}", filters.keys()).into());
    }
    Ok(program)
}

/// The common filters with the rules of one architecture.
fn merge(architecture: &str) -> Result<Map<String, Value>, Box<dyn Error>> {
    let read = |name: &str| -> Result<Map<String, Value>, Box<dyn Error>> {
        Ok(serde_json::from_slice(&std::fs::read(format!("seccomp/{name}.json"))?)?)
    };
    let mut filters = read("common")?;
    for (name, mut rules) in read(architecture)? {
        let filter = filters.get_mut(&name).and_then(|filter| filter["filter"].as_array_mut());
        let filter = filter.ok_or_else(|| format!("{architecture}.json: there is no filter {name}"))?;
        filter.append(rules.as_array_mut().ok_or("a list of rules is needed")?);
    }
    Ok(filters)
}

/// What this filter would allow is for the next one to judge.
fn pass_on(filter: &mut BpfProgram) {
    let length = filter.len();
    for (index, step) in filter.iter_mut().enumerate() {
        if step.code == RETURN && step.k == ALLOW {
            *step = instruction(JUMP, 0, 0, (length - index - 1) as u32);
        }
    }
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// As the kernel of a little-endian machine reads it.
fn instruction_bytes(step: &sock_filter) -> [u8; 8] {
    let ([c0, c1], [k0, k1, k2, k3]) = (step.code.to_le_bytes(), step.k.to_le_bytes());
    [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
}

//! Compiles the seccomp filters of workers and of service processes for each architecture from the JSON data in `seccomp/`.
//! A part of the build script.
//!
//! A service process has one program, `ARCHITECTURE.front.bpf` or `ARCHITECTURE.signer.bpf`: it allows what the file of that
//! name allows, and kills the process at any other call. The rest is about workers.
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

use std::collections::BTreeMap;
use std::path::Path;

use seccompiler::{BpfProgram, TargetArch};
use serde_json::{Value, json};

use crate::compiler::{
    ARCHITECTURES, Fallible, Filters, answer, bytes, number_of, one_filter, partial_program, program, read,
};

/// The folder of the rules, relative to the crate `sandbox`.
const RULES: &str = "../seccomp";

/// Compiles the filters into the directory `out`.
pub(crate) fn compile(out: &Path) -> Fallible<()> {
    println!("cargo::rerun-if-changed={RULES}");
    for target in ARCHITECTURES {
        let (architecture, _) = target;
        let (filters, zygote) = (merge(architecture)?, rules_of("zygote", architecture)?);
        let programs = [
            ("zygote", zygote_program(&filters, &zygote, target)?),
            ("worker", worker_program(&filters, &zygote, architecture)?),
            ("front", service_program("front", target)?),
            ("signer", service_program("signer", target)?),
        ];
        for (name, program) in programs {
            std::fs::write(out.join(format!("{architecture}.{name}.bpf")), bytes(&program))?;
        }
    }
    Ok(())
}

/// Compiles the program that the zygote installs: it allows the system calls of workers and of the zygote. It kills the
/// process at an x32 call.
fn zygote_program(filters: &Filters, zygote: &[Value], target: (&str, u32)) -> Fallible<BpfProgram> {
    let mut filters = filters.clone();
    let allowed = filters["allowed"]["filter"].as_array_mut().ok_or("a list of rules is needed")?;
    for rule in zygote {
        if rule.get("args").is_none() {
            allowed.retain(|other| other["syscall"] != rule["syscall"]);
        }
        allowed.push(rule.clone());
    }
    program(target, &filters, &json!("kill_process"), &filters["allowed"]["mismatch_action"])
}

/// Compiles the program that each worker installs. For the system calls of `zygote.json`, only the rules for workers
/// apply. About all other calls, the zygote's program alone decides.
fn worker_program(filters: &Filters, zygote: &[Value], architecture: &str) -> Fallible<BpfProgram> {
    let (allowed, target) = (&filters["allowed"], TargetArch::try_from(architecture)?);
    let mut verdicts = BTreeMap::new();
    for rule in zygote {
        let name = rule["syscall"].as_str().ok_or("a rule without a call")?;
        let rules = allowed["filter"].as_array().ok_or("a list of rules is needed")?;
        let rules: Vec<&Value> = rules.iter().filter(|rule| rule["syscall"] == name).collect();
        let steps = match rules.is_empty() {
            true => answer(&allowed["mismatch_action"])?,
            false => one_filter(&allowed["match_action"], &allowed["mismatch_action"], &rules, target)?,
        };
        verdicts.insert(number_of(name, target)?, steps);
    }
    partial_program(verdicts)
}

/// Compiles the program of a service process. It kills the process at each call that the file `name` does not allow.
fn service_program(name: &str, target: (&str, u32)) -> Fallible<BpfProgram> {
    let (kill, rules) = (json!("kill_process"), rules_of(name, target.0)?);
    let allowed = json!({"match_action": "allow", "mismatch_action": kill, "filter": rules});
    program(target, &Filters::from_iter([("allowed".to_owned(), allowed)]), &kill, &kill)
}

/// Returns the rules of a file that apply to one architecture: the common rules and its own.
fn rules_of(name: &str, architecture: &str) -> Fallible<Vec<Value>> {
    let rules = read(RULES, name)?;
    let list = |part: &str| {
        rules[part].as_array().cloned().ok_or_else(|| format!("{name}.json lacks the list {part}"))
    };
    Ok([list("common")?, list(architecture)?].concat())
}

/// Returns the filters of `common.json`, extended by the rules of one architecture's file.
fn merge(architecture: &str) -> Fallible<Filters> {
    let mut filters = read(RULES, "common")?;
    for (name, rules) in read(RULES, architecture)? {
        let filter = filters.get_mut(&name).and_then(|filter| filter["filter"].as_array_mut());
        let filter = filter.ok_or_else(|| format!("{architecture}.json: there is no filter {name}"))?;
        filter.extend(rules.as_array().ok_or("a list of rules is needed")?.iter().cloned());
    }
    Ok(filters)
}

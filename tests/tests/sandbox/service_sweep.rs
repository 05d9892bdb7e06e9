//! Makes every system call, by number, in a sealed front and in a sealed signer. The kernel must permit exactly the calls that
//! the data of their filters list, and kill the process at any other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lockhouse_protocol::Exit;
use lockhouse_sandbox::Layers;
use lockhouse_tests::{BareService, End, Table, ensure, equal, target_directory};
use serde_json::Value;

use crate::sandbox::syscall_sweep::{NUMBERS_END, SECCOMP_EXEMPT, SIGSYS, number_of};

/// A call that ends the thread that makes it, so that nothing tells its result.
const SILENT: &str = "exit";

/// Returns the permitted system calls by number, each with its name and with arguments that one of its rules permits. No other
/// argument is valid, so that no call waits or has an effect.
fn allowed(kind: &str) -> BTreeMap<u32, (String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../worker/seccomp/{kind}.json"));
    let rules: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let lists = ["common", std::env::consts::ARCH].map(|list| rules[list].as_array().unwrap());
    let mut calls = BTreeMap::new();
    for rule in lists.into_iter().flatten() {
        // The descriptor or address -1, and for poll that number of descriptors.
        let (name, mut arguments) = (rule["syscall"].as_str().unwrap(), [-1, -1, 0, 0, 0, 0]);
        for condition in rule["args"].as_array().into_iter().flatten() {
            arguments[condition["index"].as_u64().unwrap() as usize] = condition["val"].as_i64().unwrap();
        }
        let arguments = arguments.map(|argument: i64| argument.to_string()).join(" ");
        calls.entry(number_of(name)).or_insert_with(|| (name.to_owned(), arguments));
    }
    calls
}

/// Makes all calls, and adds a row for each that is not as expected.
fn sweep(kind: &str, table: &mut Table) {
    let allowed = allowed(kind);
    let mut service = BareService::start(&target_directory(), kind, Layers::ALL, None, None);
    let mut reached = BTreeSet::new();
    for number in 0..NUMBERS_END {
        let (name, arguments) = allowed.get(&number).map_or(("", "0 0 0 0 0 0"), |(name, rest)| (name, rest));
        if name == SILENT || SECCOMP_EXEMPT.contains(&number) {
            continue;
        }
        let (end, ..) = service.attack(&format!("call {number} {arguments}"));
        match end {
            End::Exited(Exit::Signal(SIGSYS)) => {}
            End::TimedOut | End::Other(_) => {
                table.row(format!("{kind}: {number} {name}"), ensure(false, end))
            }
            _ => {
                reached.insert(number);
            }
        }
    }
    let expected =
        allowed.iter().filter(|(_, (name, _))| name != SILENT).map(|(number, _)| *number).collect();
    table.row(format!("{kind}: {} calls are reached", allowed.len()), equal(reached, expected));
    let another = service.attack("call 1073741863").0;
    table.row(format!("{kind}: a call of x32"), equal(another, End::Exited(Exit::Signal(SIGSYS))));
    if cfg!(target_arch = "x86_64") {
        let another = service.attack("int80 20").0;
        table.row(format!("{kind}: a call of i386"), equal(another, End::Exited(Exit::Signal(SIGSYS))));
    }
}

#[test]
fn the_kernel_permits_service_processes_exactly_the_listed_system_calls() {
    let mut table = Table::new("system calls of service processes");
    for kind in ["front", "signer"] {
        sweep(kind, &mut table);
    }
    table.finish();
}

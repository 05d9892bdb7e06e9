//! Tests of the dependencies between Lockhouse's crates, and of the libraries that certain crates must not use.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use lockhouse_tests::{Table, ensure, equal};
use serde_json::Value;

use crate::layering::source::root;

/// Lockhouse's crates, each with its name, its source folder, and the workspace crates that it may depend on. A crate
/// may depend only on crates that precede it in this list.
pub(crate) const CRATES: [(&str, &str, &[&str]); 28] = [
    ("lockhouse-protocol", "protocol/src", &[]),
    ("lockhouse-policies", "policies/src", &["protocol"]),
    ("lockhouse-sandbox", "worker/sandbox/src", &["protocol"]),
    ("lockhouse-worker", "worker/src", &["protocol", "sandbox"]),
    ("lockhouse-python", "worker/python/src", &["protocol", "sandbox", "worker"]),
    ("lockhouse-messages", "supervisor/messages/src", &["protocol"]),
    ("lockhouse-link", "supervisor/link/src", &["messages"]),
    ("lockhouse-base", "supervisor/base/src", &["protocol", "policies", "messages"]),
    ("lockhouse-cluster", "supervisor/cluster/src", &["policies", "base", "messages"]),
    ("lockhouse-catalog", "supervisor/catalog/src", &["protocol", "policies", "base", "cluster"]),
    ("lockhouse-access", "supervisor/access/src", &["base", "messages"]),
    ("lockhouse-audit", "supervisor/audit/src", &["protocol", "policies", "base", "messages"]),
    ("lockhouse-audit-forward", "supervisor/audit-forward/src", &["base", "audit"]),
    ("lockhouse-pool", "supervisor/pool/src", &["protocol", "policies", "base", "messages"]),
    ("lockhouse-mcp", "supervisor/mcp/src", &["base"]),
    (
        "lockhouse-run-channel",
        "supervisor/run-channel/src",
        &["protocol", "policies", "base", "messages", "audit"],
    ),
    (
        "lockhouse-approvals",
        "supervisor/approvals/src",
        &["protocol", "policies", "base", "messages", "catalog", "audit", "run-channel"],
    ),
    ("lockhouse-stores", "supervisor/stores/src", &["protocol", "policies", "base", "messages", "cluster"]),
    ("lockhouse-host-files", "supervisor/host-files/src", &["protocol", "policies", "base", "catalog"]),
    (
        "lockhouse-upstream",
        "supervisor/upstream/src",
        &["protocol", "sandbox", "policies", "base", "messages", "cluster", "mcp", "catalog", "run-channel"],
    ),
    (
        "lockhouse-gate",
        "supervisor/gate/src",
        &[
            "protocol",
            "policies",
            "base",
            "messages",
            "cluster",
            "catalog",
            "audit",
            "run-channel",
            "approvals",
            "stores",
            "host-files",
            "upstream",
        ],
    ),
    (
        "lockhouse-engine",
        "supervisor/engine/src",
        &[
            "protocol",
            "policies",
            "base",
            "messages",
            "link",
            "cluster",
            "access",
            "catalog",
            "audit",
            "pool",
            "run-channel",
            "approvals",
            "stores",
            "host-files",
            "upstream",
            "gate",
        ],
    ),
    ("lockhouse-front", "supervisor/front/src", &["protocol", "policies", "base", "messages", "link", "mcp"]),
    ("lockhouse-page", "supervisor/page/src", &["base", "audit"]),
    (
        "lockhouse-config",
        "supervisor/config/src",
        &[
            "protocol",
            "policies",
            "base",
            "cluster",
            "access",
            "catalog",
            "audit",
            "audit-forward",
            "pool",
            "approvals",
            "stores",
            "host-files",
            "upstream",
            "gate",
            "engine",
            "front",
            "page",
        ],
    ),
    (
        "lockhouse-client-files",
        "supervisor/client-files/src",
        &["policies", "base", "upstream", "front", "config"],
    ),
    (
        "lockhouse-setup",
        "supervisor/setup/src",
        &["protocol", "policies", "base", "catalog", "audit", "upstream", "config", "client-files"],
    ),
    (
        "lockhouse",
        "supervisor/src",
        &[
            "protocol",
            "policies",
            "sandbox",
            "base",
            "messages",
            "link",
            "cluster",
            "access",
            "catalog",
            "audit",
            "audit-forward",
            "pool",
            "run-channel",
            "approvals",
            "stores",
            "host-files",
            "upstream",
            "gate",
            "engine",
            "front",
            "page",
            "config",
            "client-files",
            "setup",
        ],
    ),
];
const TESTS: &str = "lockhouse-tests";

/// Libraries that the sandboxed crates must not depend on, directly or indirectly.
const FORBIDDEN_IN_THE_WORKER: [&str; 4] = ["tokio", "hyper", "reqwest", "rmcp"];

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root()).args(arguments).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the name of every crate of the workspace, with the names of all its dependencies: normal, build and test
/// dependencies.
pub(crate) fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let name = |of: &Value| of["name"].as_str().unwrap().to_owned();
    let dependencies =
        |package: &Value| package["dependencies"].as_array().unwrap().iter().map(name).collect();
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (name(package), dependencies(package))).collect()
}

#[test]
fn crates_depend_on_each_other_as_designed() {
    let dependencies = dependencies();
    let members: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    let mut table = Table::new("dependencies between the crates of the workspace");
    for (at, (name, _, designed)) in CRATES.iter().enumerate() {
        let designed: BTreeSet<String> = designed.iter().map(|known| format!("lockhouse-{known}")).collect();
        let ours = |known: &&String| members.contains(known.as_str());
        let found: BTreeSet<String> = dependencies[*name].iter().filter(ours).cloned().collect();
        table.row(format!("{name} knows what it is designed to know"), equal(found, designed.clone()));
        let above: BTreeSet<&str> = CRATES[..at].iter().map(|(name, ..)| *name).collect();
        let upwards: Vec<&String> = designed.iter().filter(|known| !above.contains(known.as_str())).collect();
        table.row(
            format!("{name} never knows a crate below it in the list"),
            ensure(upwards.is_empty(), upwards),
        );
    }
    let designed: BTreeSet<&str> = CRATES.iter().map(|(name, ..)| *name).chain([TESTS]).collect();
    table.row("there is no further crate", equal(members, designed));
    let owners: [(&str, &[&str]); 6] = [
        ("async-nats", &["lockhouse-cluster", TESTS]),
        ("object_store", &["lockhouse-cluster"]),
        ("bincode", &["lockhouse-protocol"]),
        (
            "rmcp",
            &[
                "lockhouse",
                "lockhouse-mcp",
                "lockhouse-upstream",
                "lockhouse-engine",
                "lockhouse-front",
                TESTS,
            ],
        ),
        (
            "reqwest",
            &[
                "lockhouse",
                "lockhouse-access",
                "lockhouse-approvals",
                "lockhouse-audit-forward",
                "lockhouse-mcp",
                "lockhouse-upstream",
                TESTS,
            ],
        ),
        ("jsonschema", &["lockhouse-config", "lockhouse-gate", "lockhouse-policies", TESTS]),
    ];
    for (dependency, owners) in owners {
        let knows = |(_, known): &(&String, &BTreeSet<String>)| known.contains(dependency);
        let found: BTreeSet<&str> =
            dependencies.iter().filter(knows).map(|(name, _)| name.as_str()).collect();
        table.row(
            format!("{dependency} is a dependency of {owners:?} alone"),
            equal(found, owners.iter().copied().collect()),
        );
    }
    table.finish();
}

#[test]
fn the_messages_are_data() {
    let tree =
        ["tree", "--package", "lockhouse-messages", "--edges", "normal", "--depth", "1", "--prefix", "none"];
    let tree = cargo(&[&tree[..], &["--format", "{p}", "--offline", "--locked"]].concat());
    let crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(crates, ["lockhouse-messages", "lockhouse-protocol", "serde", "serde_json", "uuid"]);
}

#[test]
fn sandboxed_crates_use_no_async_runtime_and_no_network() {
    let mut table = Table::new("dependencies of the sandboxed crates");
    for package in ["lockhouse-sandbox", "lockhouse-worker", "lockhouse-python"] {
        let tree = ["tree", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"];
        let tree = cargo(&[&tree[..], &["--offline", "--locked"]].concat());
        let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
        table.row(
            format!("{package} is built with what it is known to need"),
            ensure(crates.contains("lockhouse-protocol") && crates.contains("nix"), &crates),
        );
        for absent in FORBIDDEN_IN_THE_WORKER {
            // tokio-util and hyper-util depend on tokio and hyper.
            let family = format!("{absent}-");
            let found: Vec<&&str> =
                crates.iter().filter(|name| **name == absent || name.starts_with(&family)).collect();
            table.row(format!("{package} never brings {absent}"), ensure(found.is_empty(), &found));
        }
    }
    table.finish();
}

//! Seeds for the fuzz targets: the example policies, and calls that each kind of condition allows or denies.

use std::collections::BTreeMap;

use super::TOOLS;

/// Values of the argument, for each of the tools in [`TOOLS`].
const VALUES: [&[&[u8]]; TOOLS.len()] = [
    // The last is a finding: two of its characters look like the digits of an escape.
    &[
        b"/srv/docs/a",
        b"/srv/docs2",
        b"/srv/docs/../x",
        b"/srv/docs/%2e%2e/x",
        br#"["/srv/docs/a","/etc"]"#,
        b"/srv/docs/%\xce\x9a\xda\xcbe/x",
    ],
    &[
        b"https://api.example.com/x",
        b"https://x.example.org",
        b"http://api.example.com@evil.test/",
        b"https://evil.test",
    ],
    &[b"rel-1-2", b"rel", b"x"],
    &[b"5", b"11", br#""5""#, b"1.5", b"null"],
    &[b"acme", b"1", b"true", b"1.0", b"other", b"null"],
    &[br#"{"b":{"c":"acme"}}"#, br#"{"b":{"c":"x"}}"#, br#"{"b":[{"c":"acme"},{"c":"y"}]}"#, b"{}"],
];

/// Policies that name the server and the tools which the target `policy_document` asks about, and one with faults.
const DOCUMENTS: [&str; 10] = [
    "version = 1\n[servers.s]\nallow = [\"list_*\"]\nask = [\"t\"]\n",
    "version = 2\n[servers.s]\nalow = 1\n",
    include_str!("../../examples/company.toml"),
    include_str!("../../examples/deny-all.toml"),
    include_str!("../../examples/files-under-a-folder.toml"),
    include_str!("../../examples/github-read-only.toml"),
    include_str!("../../examples/per-client.toml"),
    include_str!("../../examples/read-only.toml"),
    include_str!("../../examples/team.toml"),
    include_str!("../../examples/writes-by-arguments.toml"),
];

/// Returns the seeds of each target.
pub fn seeds() -> BTreeMap<&'static str, Vec<Vec<u8>>> {
    let calls = (0_u8..).zip(VALUES);
    let calls = calls.flat_map(|(tool, values)| values.iter().map(move |value| [&[tool], *value].concat()));
    let documents = DOCUMENTS.map(|text| text.as_bytes().to_vec()).to_vec();
    BTreeMap::from([("policy_document", documents), ("decision", calls.collect())])
}

//! Tests the files that Lockhouse's packages install: the example configuration has exactly the keys in
//! `docs/configuration.md`, the example policy denies all tools, and the alert rules use only existing metrics and are
//! documented.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use lockhouse_tests::{Lockhouse, Table, ensure};

use super::code_blocks::{blocks, page};

/// Configuration keys of the example that stay commented out, because each cannot be used together with another key of
/// its table.
const EXCLUDED: [&str; 2] = ["bearer_token", "private_key"];

fn configuration() -> String {
    let directory = tempfile::tempdir().unwrap();
    let into = directory.path().to_str().unwrap();
    let made = Lockhouse::new().run(&["generate", "configuration", into]);
    assert_eq!(made.status, Some(0), "{made:?}");
    std::fs::read_to_string(directory.path().join("config.toml")).unwrap()
}

/// Returns the key or the table header in a line of TOML. Returns `None` if the line has neither.
fn key(line: &str) -> Option<&str> {
    let is_word = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '.');
    let table = || line.strip_prefix('[')?.split_once(']').map(|(table, _)| table);
    let key = || line.split_once(" = ").map(|(key, _)| key);
    table().or_else(key).filter(|word| !word.is_empty() && is_word(word))
}

fn uncommented(configuration: &str) -> String {
    let line = |line: &str| {
        let wanted =
            line.strip_prefix('#').filter(|rest| key(rest).is_some_and(|key| !EXCLUDED.contains(&key)));
        wanted.unwrap_or(line).to_owned() + "\n"
    };
    let uncommented: String = configuration.lines().map(line).collect();
    // The account name in the example need not exist on this machine.
    uncommented.replace("[\"ada\", 1001]", "[1001]")
}

/// Returns `Err` with the error messages of Lockhouse if it rejects this configuration.
fn fault(configuration: &str) -> Result<(), String> {
    let lockhouse = Lockhouse::new().config(configuration);
    let done = lockhouse.command(&["server", "list", "--no-connect"]).output().unwrap();
    let answered = String::from_utf8_lossy(&done.stderr);
    ensure(done.status.success(), answered)
}

#[test]
fn the_packaged_configuration_lists_every_key_with_its_default() {
    let (configuration, documented) = (configuration(), blocks(&page("docs/configuration.md")));
    let documented = documented.iter().find(|block| block.language == "toml").unwrap();
    let keys: BTreeSet<&str> = documented.text.lines().filter_map(key).collect();
    let found: BTreeSet<&str> =
        configuration.lines().filter_map(|line| key(line.strip_prefix('#').unwrap_or(line))).collect();
    let mut table = Table::new("/etc/lockhouse/config.toml");
    let left_out: Vec<_> = keys.difference(&found).collect();
    table.row("has the documented keys", ensure(left_out.is_empty(), left_out));
    table.row("there are many", ensure(keys.len() > 50, keys.len()));
    let in_force: Vec<&str> =
        configuration.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    table.row("none of them is in force", ensure(in_force.is_empty(), in_force));
    table.row("is valid unchanged", fault(&configuration));
    table.row("can be used with every key", fault(&uncommented(&configuration)));
    let wrong = uncommented(&configuration).replace("timeout_seconds = 30", "timeout_second = 30");
    table.row("an unknown key is reported", ensure(fault(&wrong).is_err(), "the key was accepted"));
    table.finish();
}

#[test]
fn the_packaged_policy_allows_nothing() {
    let policy = page("packaging/deb/policy.toml");
    let lockhouse = Lockhouse::with_fixture().policy(&policy);
    let checked = lockhouse.command(&["policy", "check"]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert!(!policy.lines().any(|line| line.starts_with("allow") || line.starts_with("ask")));
}

#[test]
fn every_alert_refers_to_an_existing_metric_and_is_documented() {
    let (rules, figures, guide) =
        (page("packaging/prometheus/alerts.yml"), page("docs/metrics.md"), page("docs/operate.md"));
    let mut table = Table::new("packaging/prometheus/alerts.yml");
    let mut names = 0;
    for line in rules.lines() {
        if let Some(alert) = line.trim().strip_prefix("- alert: ") {
            table.row(alert, ensure(guide.contains(&format!("`{alert}`")), "is not in docs/operate.md"));
        }
        let Some(expression) = line.trim().strip_prefix("expr: ") else { continue };
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        for figure in words.filter(|word| word.starts_with("lockhouse_")) {
            names += 1;
            let figure = figure.strip_suffix("_bucket").unwrap_or(figure);
            table.row(figure, ensure(figures.contains(&format!("`{figure}`")), "is not in docs/metrics.md"));
        }
    }
    table.row("there are some", ensure(names > 10, names));
    table.finish();
}

#[test]
fn files_named_in_the_makefile_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    let words = makefile.lines().filter(|line| line.starts_with('\t')).flat_map(str::split_whitespace);
    let scripts: BTreeSet<&str> =
        words.filter(|word| word.starts_with("packaging/") || word.starts_with("tests/")).collect();
    let mut table = Table::new("scripts of the Makefile");
    table.row("there are many", ensure(scripts.len() > 15, scripts.len()));
    let is_tracked = |file: &str| {
        let asked =
            Command::new("git").args(["ls-files", "--error-unmatch", file]).current_dir(&root).output();
        asked.is_ok_and(|done| done.status.success())
    };
    // A source archive has no Git history.
    let has_history = is_tracked("Makefile");
    for script in scripts.into_iter().map(|script| script.trim_end_matches(';')) {
        let is_there = root.join(script).exists() && (!has_history || is_tracked(script));
        table.row(script, ensure(is_there, "missing, or not in the repository"));
    }
    table.finish();
}

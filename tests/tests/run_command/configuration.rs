//! Tests of `lockhouse config check`, and of the file permissions that Lockhouse requires of its configuration files.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

const INVALID_CONFIG: &str = "\
[limts]
calls = 3
[limits]
call = 3
memory_mib = \"much\"
[pool]
# idle = 4
running = 4
idle = 0
[clients]
running = 0
[servers.x]
comand = \"y\"
";

#[test]
fn all_configuration_errors_are_reported_at_once_with_position_and_help() {
    let lockhouse = Lockhouse::new();
    lockhouse.file("home/broken.toml", INVALID_CONFIG);
    let full = lockhouse.run(&["config", "check", "broken.toml"]);
    insta::assert_snapshot!("config_check_in_full", full.transcript());
    let short = lockhouse.run(&["config", "check", "broken.toml", "--format", "short"]);
    insta::assert_snapshot!("config_check_in_short", short.transcript());
    let told = lockhouse.run(&["config", "check", "broken.toml", "--json"]).json();
    let errors = told["errors"].as_array().unwrap();
    let lines: Vec<Value> = errors.iter().map(|error| error["line"].clone()).collect();
    assert_eq!(told["valid"], false);
    assert_eq!(lines.iter().filter(|line| !line.is_null()).count(), 5, "{told}");
    assert!(
        errors.iter().all(|error| error["file"].as_str().is_some_and(|file| file.starts_with("broken.toml")))
    );
}

#[test]
fn a_configuration_can_be_checked_before_use_without_starting_anything() {
    let lockhouse = Lockhouse::new()
        .config("[servers.x]\ncommand = \"/nonexistent\"\n[servers.y]\ncommand = \"z\"\nenabled = false\n");
    lockhouse.file("home/broken.toml", INVALID_CONFIG);
    let mut table = Table::new("config check");
    let valid = lockhouse.run(&["config", "check"]);
    let told = valid.stdout.contains("config.toml is valid; 1 server can be used");
    table.row("valid", ensure(valid.status == Some(0) && told && valid.stderr.is_empty(), &valid));
    table.row("one that is switched off", ensure(valid.stdout.contains("server y is not used"), &valid));
    let json = lockhouse.run(&["config", "check", "--json"]).json();
    let holds =
        json["valid"] == true && json["servers"] == json!(["x"]) && json["not_used"][0]["name"] == "y";
    table.row("as JSON", ensure(holds, &json));
    for (name, lockhouse, arguments, status) in [
        ("another file", &lockhouse, &["config", "check", "broken.toml"][..], 2),
        ("with --config", &lockhouse, &["--config", "broken.toml", "config", "check"], 2),
        ("a file that is not there", &lockhouse, &["config", "check", "missing.toml"], 2),
        ("no file at all", &Lockhouse::new(), &["config", "check"], 0),
    ] {
        let finished = lockhouse.run(arguments);
        table.row(name, equal(finished.status, Some(status)).map_err(|told| format!("{told} {finished:?}")));
    }
    table.finish();
}

#[test]
fn a_leading_tilde_is_the_home_directory_in_each_path() {
    let lockhouse = Lockhouse::new();
    std::os::unix::fs::symlink("/usr/bin/python3", lockhouse.path("home/my-python")).unwrap();
    let lockhouse =
        lockhouse.config("[python]\ninterpreter = \"~/my-python\"\n[audit]\ndirectory = \"~/log\"\n");
    let finished = lockhouse.run(&["run", "-c", "6 * 7", "--language", "python"]);
    assert_eq!((finished.status, finished.stdout.trim()), (Some(0), "42"), "{finished:?}");
    assert!(lockhouse.path("home/log").is_dir(), "the audit log is there");
    let lockhouse =
        lockhouse.config("[python]\ninterpreter = \"~/none\"\n[javascript]\nworker = \"~/none\"\n");
    for language in ["python", "typescript"] {
        let finished = lockhouse.run(&["run", "-c", "1", "--language", language]);
        let place = lockhouse.path("home/none").display().to_string();
        assert!(finished.status == Some(7) && finished.stderr.contains(&place), "{finished:?}");
    }
}

fn chmod(lockhouse: &Lockhouse, path: &str, mode: u32) {
    std::fs::set_permissions(lockhouse.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Lockhouse does not use a policy or configuration file that other users can write, because they could change what
/// programs may do.
#[test]
fn files_that_others_can_write_are_not_used() {
    let run = ["run", "-c", "1", "--language", "python"];
    let mut table = Table::new("modes");
    for (path, mode, refused) in [
        ("config/lockhouse/policy.toml", 0o644, false),
        ("config/lockhouse/policy.toml", 0o646, true),
        ("config/lockhouse/config.toml", 0o646, true),
        ("servers.json", 0o646, true),
        ("config/lockhouse", 0o757, true),
        ("config/lockhouse", 0o1757, false),
        ("config", 0o757, true),
        ("state/lockhouse", 0o757, true),
    ] {
        let lockhouse = Lockhouse::with_fixture().config("[pool]\nidle = 1\n");
        std::fs::create_dir_all(lockhouse.path("state/lockhouse")).unwrap();
        chmod(&lockhouse, path, mode);
        let place = lockhouse.path(path).display().to_string();
        for arguments in [&run[..], &["serve"], &["doctor"], &["tools", "list"]] {
            let finished = lockhouse.run(arguments);
            let told = finished.stderr.contains(&format!("run `chmod go-w {place}`"));
            let holds = if refused { finished.status == Some(2) && told } else { finished.status == Some(0) };
            table.row(format!("{path} {mode:o}: {arguments:?}"), ensure(holds, finished));
        }
    }
    table.finish();
}

#[test]
fn secrets_readable_by_others_are_reported_at_the_start_and_by_doctor() {
    let lockhouse = Lockhouse::new();
    let added = lockhouse.run(&["server", "add", "x", "-e", "TOKEN=ghp_0123456789", "--", "/bin/true"]);
    assert_eq!(added.status, Some(0), "{added:?}");
    let elsewhere = lockhouse.file("elsewhere/key", "0123456789");
    let config = std::fs::read_to_string(lockhouse.path("config/lockhouse/config.toml")).unwrap();
    let reference = format!(
        "[servers.y]\ncommand = \"/bin/true\"\nenv = {{ A = \"${{file:{}}}\" }}\n",
        elsewhere.display()
    );
    let lockhouse = lockhouse.config(&format!("{config}{reference}"));
    chmod(&lockhouse, "elsewhere/key", 0o600);
    let report =
        |lockhouse: &Lockhouse| lockhouse.run(&["doctor", "--json"]).json()["readable_secrets"].clone();
    let mut table = Table::new("secrets that others can read");
    table.row("control: nobody else can", equal(report(&lockhouse), json!([])));
    let quiet = lockhouse.run(&["serve"]);
    table.row("control: nothing is logged", ensure(!quiet.stderr.contains("holds a secret"), &quiet));
    for path in ["config/lockhouse/secrets/x.TOKEN", "elsewhere/key", "state/lockhouse/audit-key"] {
        chmod(&lockhouse, path, 0o644);
        let place = lockhouse.path(path).display().to_string();
        let found = report(&lockhouse);
        let told = found[0]["file"] == place.as_str() && found[0]["fix"] == format!("chmod 600 {place}");
        table.row(format!("{path}: doctor"), ensure(told && found[0]["mode"] == "0644", &found));
        let served = lockhouse.run(&["serve"]);
        let told = served
            .stderr
            .contains(&format!("{place} holds a secret, and everybody on this machine can read it"));
        table.row(format!("{path}: at the start"), ensure(told && served.status == Some(0), &served));
        chmod(&lockhouse, path, 0o600);
    }
    table.finish();
}

//! Tests of `lockhouse run` on hosts with a missing or broken language interpreter or a broken configuration: the error
//! message says what the user can do.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

fn check_unavailable(finished: &CommandOutput, words: &[&str]) -> Result<(), String> {
    let told = words.iter().all(|words| finished.stderr.contains(words));
    ensure(finished.status == Some(7) && told && !finished.stderr.contains("panicked"), finished)
}

#[test]
fn an_unavailable_language_engine_is_reported_with_a_reason() {
    let lockhouse = Lockhouse::new();
    let script = |name: &str, text: &str| {
        let path = lockhouse.file(name, text);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let text = lockhouse.file("text", "no program").display().to_string();
    let exits = script("exits", "#!/bin/sh\necho gave up >&2\nexit 3\n");
    let old = script("old", "#!/bin/sh\necho Python 3.8 is too old >&2\nexit 1\n");
    let python = |path: &str| format!("[python]\ninterpreter = \"{path}\"\n");
    let rows: [(&str, &str, String, &[&str]); 11] = [
        (
            "no worker binary",
            "typescript",
            "[javascript]\nworker = \"/nonexistent\"\n".into(),
            &["/nonexistent", "[javascript]"],
        ),
        (
            "another program as the worker",
            "typescript",
            "[javascript]\nworker = \"/bin/true\"\n".into(),
            &["/bin/true"],
        ),
        ("no interpreter", "python", python("/nonexistent"), &["/nonexistent", "[python]"]),
        ("another program as the interpreter", "python", python("/bin/true"), &["/bin/true"]),
        ("an interpreter that fails", "python", python("/bin/false"), &["/bin/false"]),
        ("an interpreter that exits", "python", python(&exits), &["gave up"]),
        ("an interpreter that is too old", "python", python(&old), &["too old"]),
        ("a text file as the interpreter", "python", python(&text), &[&text]),
        ("a directory as the interpreter", "python", python("/tmp"), &["/tmp"]),
        (
            "no extension",
            "python",
            "[python]\nextension = \"/nonexistent.so\"\n".into(),
            &["/nonexistent.so", "[python]"],
        ),
        (
            "a preload that is missing",
            "python",
            "[python]\npreload = [\"no_such_module\"]\n".into(),
            &["no_such_module"],
        ),
    ];
    let mut table = Table::new("unavailable language engines");
    for (name, language, config, words) in rows {
        lockhouse.file("config/lockhouse/config.toml", config);
        let finished = lockhouse.run(&["run", "-c", "1", "--language", language]);
        table.row(name, check_unavailable(&finished, words));
        // The other language does not depend on Python.
        let other = if language == "python" { "typescript" } else { "python" };
        let finished = lockhouse.run(&["run", "-c", "1", "--language", other]);
        table.row(format!("{name}: {other} works"), ensure(finished.status == Some(0), finished));
    }
    table.finish();
}

#[test]
fn messages_about_a_broken_configuration_say_what_to_do() {
    let rows = [
        ("config_unknown_key", "[limits]\ntimeout = 3\n"),
        ("config_out_of_range", "[pool]\nidle = 0\n\n[limits]\nmemory_mib = 1\n"),
        ("config_bad_toml", "[limits]\ntimeout_seconds = \n"),
        ("config_no_interpreter", "[python]\ninterpreter = \"/nonexistent\"\n"),
        ("config_no_module", "[python]\npreload = [\"no_such_module\"]\n"),
    ];
    for (name, config) in rows {
        let finished = Lockhouse::new().config(config).run(&["run", "-c", "1", "--language", "python"]);
        insta::assert_snapshot!(name, finished.transcript());
    }
    let policies = [
        ("policy_unknown_key", "version = 1\n\n[servers.github]\nallowed = [\"list_*\"]\n"),
        ("policy_bad_pattern", "version = 1\n[servers.github]\nallow = [\"a*b\", \"\", \"ok\"]\ndeny = 3\n"),
        ("policy_no_version", "[servers.github]\nallow = [\"list_*\"]\n"),
    ];
    for (name, policy) in policies {
        insta::assert_snapshot!(name, Lockhouse::new().policy(policy).run(&["policy", "check"]).transcript());
    }
    let lockhouse = Lockhouse::new();
    let servers = lockhouse.file("servers.json", "{\n  \"mcpServers\": {,}\n}\n");
    let finished = lockhouse.run(&["tools", "list", "--servers", servers.to_str().unwrap()]);
    insta::assert_snapshot!("servers_bad_json", finished.transcript());
}

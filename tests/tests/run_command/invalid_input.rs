//! Tests of invalid arguments and files for `lockhouse run`: each leads to an exit status and an error message, and
//! never to a panic.

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

/// Checks the exit status of a finished command, and that its standard error contains all of `words` and no panic.
fn check_refused(finished: &CommandOutput, status: i32, words: &[&str]) -> Result<(), String> {
    let told = words.iter().all(|words| finished.stderr.contains(words));
    ensure(finished.status == Some(status) && told && !finished.stderr.contains("panicked"), finished)
}

#[test]
fn valid_example_files_are_accepted() {
    let config = "[limits]\ntimeout_seconds = 3\n\n[pool]\nidle = 2\n\n[python]\npreload = [\"ctypes\"]\n";
    let finished = Lockhouse::with_fixture().config(config).run(&["run", "-c", "1", "--language", "python"]);
    assert_eq!((finished.status, finished.stdout.as_str()), (Some(0), "1\n"), "{finished:?}");
}

#[test]
fn an_invalid_configuration_is_refused_with_its_line() {
    let rows: [(&str, &[u8], &[&str]); 10] = [
        ("unknown key", b"[limits]\n\ntimeout = 3\n", &["config.toml:3", "timeout_seconds"]),
        ("unknown table", b"\n[limit]\n", &["config.toml:2", "limits"]),
        ("bad TOML", b"[limits]\ntimeout_seconds = \n", &["config.toml:2"]),
        ("an open table", b"[limits\n", &["config.toml:1"]),
        ("wrong type", b"[limits]\nmemory_mib = \"much\"\n", &["config.toml:2"]),
        ("out of range", b"[pool]\nidle = 0\n", &["config.toml:2", "1 to 64"]),
        ("negative", b"[limits]\nmemory_mib = -5\n", &["config.toml:2"]),
        ("duplicate key", b"[pool]\nidle = 1\nidle = 2\n", &["config.toml:3"]),
        ("server without a command", b"[servers.x]\nargs = []\n", &["config.toml:1", "command"]),
        ("not UTF-8", b"[limits]\n# \xff\n", &["config.toml", "line 2", "UTF-8"]),
    ];
    let mut table = Table::new("configurations");
    for (name, text, words) in rows {
        let lockhouse = Lockhouse::new();
        lockhouse.file("config/lockhouse/config.toml", text);
        table.row(name, check_refused(&lockhouse.run(&["run", "-c", "1", "--language", "python"]), 2, words));
    }
    table.finish();
}

#[test]
fn an_invalid_policy_is_refused_with_its_line() {
    let rows: [(&str, &str, &[&str]); 9] = [
        ("no version", "[servers.x]\nallow = []\n", &["policy.toml", "version = 1"]),
        ("a later version", "version = 2\n", &["policy.toml:1", "later"]),
        ("unknown key", "version = 1\n[servers.x]\nallowed = []\n", &["policy.toml:3", "allow"]),
        ("allow outside a table", "version = 1\nallow = [\"a\"]\n", &["policy.toml:2", "[servers.NAME]"]),
        ("bad TOML", "version = 1\n[servers.x\n", &["policy.toml:2"]),
        ("not a list", "version = 1\n[servers.x]\nallow = \"all\"\n", &["policy.toml:3"]),
        ("a star in the middle", "version = 1\n[servers.x]\nallow = [\"a*b\"]\n", &["policy.toml:3", "*"]),
        ("a bad server name", "version = 1\n[servers.\"a b\"]\nallow = []\n", &["policy.toml:2", "a b"]),
        ("empty", "", &["policy.toml", "version = 1"]),
    ];
    let mut table = Table::new("policies");
    for (name, text, words) in rows {
        let lockhouse = Lockhouse::new().policy(text);
        for command in [&["run", "-c", "1", "--language", "python"][..], &["policy", "check"]] {
            table.row(format!("{name}: {}", command[0]), check_refused(&lockhouse.run(command), 2, words));
        }
    }
    table.finish();
}

#[test]
fn an_invalid_servers_file_is_refused_with_its_line() {
    let rows: [(&str, &[u8], &[&str]); 5] = [
        ("bad JSON", b"{\n  \"mcpServers\": {,}\n}", &["servers.json:2"]),
        ("cut off", b"{\"mcpServers\": {", &["servers.json:1"]),
        ("no mcpServers", b"{\"servers_\": {}}", &["servers.json", "mcpServers"]),
        ("a list", b"[]", &["servers.json", "mcpServers"]),
        ("empty", b"", &["servers.json"]),
    ];
    let mut table = Table::new("servers files");
    for (name, text, words) in rows {
        let lockhouse = Lockhouse::new();
        let file = lockhouse.file("servers.json", text);
        let arguments = ["run", "-c", "1", "--language", "python", "--servers", file.to_str().unwrap()];
        table.row(name, check_refused(&lockhouse.run(&arguments), 2, words));
    }
    table.finish();
}

#[test]
fn a_file_that_is_missing_or_a_directory_is_refused_by_its_name() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("missing files and directories");
    let run = ["run", "-c", "1", "--language", "python"];
    let control = lockhouse.run(&run);
    table.row("control", ensure(control.status == Some(0), control));
    for option in ["--config", "--policy", "--servers"] {
        for path in ["/nonexistent/file.toml", "/tmp"] {
            let finished = lockhouse.run(&[&run[..], &[option, path]].concat());
            table.row(format!("{option} {path}"), check_refused(&finished, 2, &[path]));
        }
    }
    for path in ["/nonexistent/program.py", "/tmp"] {
        let finished = lockhouse.run(&["run", path, "--language", "python"]);
        table.row(format!("program {path}"), check_refused(&finished, 2, &[path]));
    }
    table.finish();
}

#[test]
fn invalid_arguments_are_refused() {
    let lockhouse = Lockhouse::new();
    let long = "#".repeat(100_000);
    let rows: [(&str, &[&str], &[&str]); 10] = [
        ("unknown language", &["run", "-c", "1", "--language", "cobol"], &["cobol", "python", "typescript"]),
        ("no language", &["run", "-c", "1"], &["--language"]),
        ("no program", &["run", "--language", "python"], &["FILE"]),
        ("file and code", &["run", "x.py", "-c", "1"], &["cannot be used with"]),
        ("empty code", &["run", "-c", "", "--language", "python"], &["the code is empty"]),
        ("blank code", &["run", "-c", " \n\t", "--language", "typescript"], &["the code is empty"]),
        ("timeout 0", &["run", "-c", "1", "--language", "python", "--timeout", "0"], &["a positive number"]),
        (
            "negative timeout",
            &["run", "-c", "1", "--language", "python", "--timeout=-1"],
            &["a positive number"],
        ),
        (
            "timeout nan",
            &["run", "-c", "1", "--language", "python", "--timeout", "nan"],
            &["a positive number"],
        ),
        ("unknown command", &["fly"], &["fly"]),
    ];
    let mut table = Table::new("arguments");
    for (name, arguments, words) in rows {
        table.row(name, check_refused(&lockhouse.run(arguments), 2, words));
    }
    let finished = lockhouse.run(&["run", "-c", &long, "--language", "python"]);
    table.row("a program of comments alone", ensure(finished.status == Some(0), finished));
    table.finish();
}

#[test]
fn programs_that_are_too_large_or_not_utf8_are_refused() {
    let lockhouse = Lockhouse::new();
    let mut table = Table::new("programs");
    let large = lockhouse.file("large.py", "x".repeat(10_000_000));
    let finished = lockhouse.run(&["run", large.to_str().unwrap()]);
    table.row("10 MB", check_refused(&finished, 2, &["10000000 bytes", "262144"]));
    let invalid = lockhouse.file("invalid.py", b"x = 1\ny = '\xff'\n");
    let finished = lockhouse.run(&["run", invalid.to_str().unwrap()]);
    table.row("invalid UTF-8", check_refused(&finished, 2, &["invalid.py", "line 2", "UTF-8"]));
    for (language, status) in [("python", 1), ("typescript", 1)] {
        let finished = lockhouse.run_with_input(&["run", "-", "--language", language], b"1\0 + 1");
        table.row(format!("{language}: a NUL"), check_refused(&finished, status, &[]));
    }
    table.finish();
}

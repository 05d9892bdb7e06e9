//! Tests of `lockhouse config check`, and of the file permissions that Lockhouse requires of its configuration files.

use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};
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
    symlink("/usr/bin/python3", lockhouse.path("home/my-python")).unwrap();
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

/// Runs a command, and says whether it was rejected with these words; `None` if it succeeded.
fn rejected(command: &mut Command, words: &str) -> Option<Result<(), String>> {
    let finished = CommandOutput::run(command, b"");
    let is_told = finished.status == Some(2) && finished.stderr.contains(words);
    (finished.status != Some(0)).then(|| ensure(is_told, finished))
}

/// Lockhouse does not use files of another account, and not those that a link of another account names.
/// The value can be a part of a server's command.
#[test]
fn a_value_from_a_file_of_another_account_is_not_used() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let lockhouse = Lockhouse::new();
    let value = lockhouse.file("value", "1");
    let entry = format!("[servers.x]\ncommand = \"/bin/true\"\nargs = [\"${{file:{}}}\"]\n", value.display());
    let lockhouse = lockhouse.config(&entry);
    let mut table = Table::new("a value from a file");
    for (name, owner, words) in [
        ("control", 0, "1 server can be used"),
        ("of another account", 64_321, "belongs to 64321, who could change what code may do"),
    ] {
        lchown(&value, Some(owner), None).unwrap();
        let checked = lockhouse.run(&["config", "check"]);
        let all = format!("{}{}", checked.stdout, checked.stderr);
        table.row(name, ensure(all.contains(words), &checked));
    }
    table.finish();
}

#[test]
fn files_of_another_account_are_not_used() {
    const OTHER: u32 = 64_321;
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let mut table = Table::new("files of another account");
    for (path, is_link) in [
        ("config/lockhouse/policy.toml", false),
        ("config/lockhouse/config.toml", false),
        ("config/lockhouse", false),
        ("servers.json", false),
        ("state/lockhouse", false),
        ("cache/lockhouse", false),
        ("home/link", true),
    ] {
        let lockhouse = Lockhouse::with_fixture().config("[pool]\nidle = 1\n");
        for name in ["state/lockhouse", "cache/lockhouse"] {
            std::fs::create_dir_all(lockhouse.path(name)).unwrap();
        }
        symlink(lockhouse.path("config/lockhouse/policy.toml"), lockhouse.path("home/link")).unwrap();
        let command = |more: &[&str]| {
            let mut command = lockhouse.command(&["tools", "list"]);
            if is_link {
                command.args(["--policy", "link"]);
            }
            command.args(more);
            command
        };
        table.row(format!("{path}: control"), ensure(rejected(&mut command(&[]), "").is_none(), path));
        lchown(lockhouse.path(path), Some(OTHER), None).unwrap();
        let place = lockhouse.path(path).display().to_string();
        let words = format!(
            "{place} belongs to {OTHER}, who could change what code may do: run `chown root {place}`"
        );
        let outcome = rejected(&mut command(&[]), &words);
        table.row(path, outcome.unwrap_or_else(|| Err("it was used".into())));
        let named = ["--trust-owner", &OTHER.to_string()];
        table.row(format!("{path}: named"), ensure(rejected(&mut command(&named), "").is_none(), path));
        let another = ["--trust-owner", "64322"];
        table.row(format!("{path}: another is named"), rejected(&mut command(&another), &words).unwrap());
    }
    table.finish();
}

#[test]
fn files_with_an_access_control_list_for_another_account_are_not_used() {
    let lockhouse = Lockhouse::new().policy("version = 1\n");
    let policy = lockhouse.path("config/lockhouse/policy.toml");
    let listed = |entry: &str| {
        Command::new("setfacl").args(["-m", entry]).arg(&policy).status().is_ok_and(|status| status.success())
    };
    // Not on a host or file system without access control lists.
    if !listed("user:64321:r") {
        return;
    }
    let command = || lockhouse.command(&["tools", "list"]);
    let mut table = Table::new("access control lists");
    table.row("control: it can only read", ensure(rejected(&mut command(), "").is_none(), ""));
    assert!(listed("user:64321:rw"));
    let words = format!(
        "(64321, by its access control list), who could change what code may do: run `setfacl -x user:64321 {}`",
        policy.display()
    );
    table.row("it can write", rejected(&mut command(), &words).unwrap_or_else(|| Err("it was used".into())));
    table.finish();
}

/// In a user namespace, such as that of bubblewrap, files of root have no owner with a name.
#[test]
fn lockhouse_starts_in_a_user_namespace_with_a_read_only_root() {
    const ACCOUNT: &str = "64321";
    let lockhouse = Lockhouse::outside_tmp().policy("version = 1\n").config("[pool]\nidle = 1\n");
    let place = lockhouse.path("").display().to_string();
    let bubblewrap = |arguments: &[&str]| {
        // Root has all accounts in its user namespace.
        let mut command = if nix::unistd::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--clear-groups", "bwrap"]);
            command
        } else {
            Command::new("bwrap")
        };
        command.arg("--unshare-user").args(arguments);
        command.arg("--").arg(lockhouse.program()).args(["tools", "list"]);
        let of_lockhouse = lockhouse.command(&[]);
        command.env_clear().envs(of_lockhouse.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    if nix::unistd::geteuid().is_root() {
        let _ = CommandOutput::run(Command::new("chown").args(["-R", ACCOUNT, &place]), b"");
    }
    let root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    let started =
        CommandOutput::run(&mut bubblewrap(&[&root[..], &["--bind", &place, &place]].concat()), b"");
    if !started.stderr.contains("lockhouse") && started.status != Some(0) {
        // No bubblewrap on this host, or no user namespaces for it.
        return;
    }
    let mut table = Table::new("user namespaces");
    table.row(
        "the root and the system are mounted read-only",
        equal(started.status, Some(0)).map_err(|e| format!("{e} {started:?}")),
    );
    let root = ["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc"];
    let words = "belongs to nobody, who could change what code may do: mount";
    let outcome = rejected(&mut bubblewrap(&root), words);
    table.row("the system is writable", outcome.unwrap_or_else(|| Err("it was used".into())));
    if nix::unistd::geteuid().is_root() {
        let policy = lockhouse.path("config/lockhouse/policy.toml");
        lchown(&policy, Some(64_322), None).unwrap();
        let root = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", &place, &place];
        let outcome = rejected(&mut bubblewrap(&root), words);
        table.row("a file of another account outside", outcome.unwrap_or_else(|| Err("it was used".into())));
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
        // A command that writes a record replaces the key of the audit log by a new one.
        chmod(&lockhouse, path, 0o644);
        let served = lockhouse.run(&["serve"]);
        let told = served
            .stderr
            .contains(&format!("{place} holds a secret, and everybody on this machine can read it"));
        table.row(format!("{path}: at the start"), ensure(told && served.status == Some(0), &served));
        chmod(&lockhouse, path, 0o600);
    }
    table.finish();
}

//! Tests of `lockhouse doctor --profile enterprise`, the checklist of a managed host.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal, wait_until};

use super::{can_mount, managed, require, server};

/// A sink, which is ended when the value is dropped.
struct Sink(Child);

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the audit sink to which the requirements of [`hardened`] lead.
async fn start_sink(lockhouse: &Lockhouse) -> Sink {
    let (socket, directory) = (lockhouse.path("sink.sock"), lockhouse.path("sink"));
    let own = lockhouse.file("sink.toml", "[audit]\nforward = [\"syslog+tls://logs.example:6514\"]\n");
    let mut command = lockhouse.command(&["audit", "sink", "--config"]);
    command.arg(own).arg("--listen").arg(&socket).arg("--directory").arg(directory);
    let sink = Sink(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("the sink accepts connections", async || {
        std::os::unix::net::UnixStream::connect(&socket).ok().map(drop)
    })
    .await;
    sink
}

/// Requirements with which each check passes.
fn hardened(lockhouse: &Lockhouse) -> String {
    lockhouse.file("etc/lockhouse/required-policy.toml", "version = 1\n");
    let socket = lockhouse.path("sink.sock");
    format!(
        "engine = \"system\"\nsandbox = \"required\"\npolicy = \"/etc/lockhouse/required-policy.toml\"\n\
         [approvals]\npresence = \"key\"\n\
         [audit]\nsink = \"unix:{}\"\nforward = [\"syslog+tls://logs.example:6514\"]\n\
         [servers.\"*\"]\non_change = \"ask\"\nsandbox = {{ profile = \"default\" }}\n",
        socket.display()
    )
}

fn doctor(lockhouse: &Lockhouse, arguments: &[&str]) -> CommandOutput {
    let words = [&["doctor", "--profile", "enterprise"], arguments].concat();
    let mut command: Command = managed(lockhouse, &lockhouse.command(&words));
    CommandOutput::run(command.env("COLUMNS", "1000"), b"")
}

/// Returns what was printed, without paths of this test and without the checks of this host's kernel.
fn normalized(lockhouse: &Lockhouse, output: &CommandOutput) -> String {
    let text = output.stdout.replace(lockhouse.path("").to_str().unwrap().trim_end_matches('/'), "[DIR]");
    let mut is_of_kernel = false;
    let kept = text.lines().filter(|line| {
        if !line.starts_with(' ') {
            is_of_kernel = line.contains("each protection of workers") || line.contains("sandbox of servers");
        }
        !is_of_kernel && !line.ends_with("checks pass")
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// A configuration with everything that the checks of servers and secrets find.
fn careless() -> Lockhouse {
    let lockhouse = Lockhouse::new();
    let secret = lockhouse.file("home/secret", "SEKRET");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let config = format!(
        "{}args = [\"--token\", \"sk-0123456789abcdefghij\"]\nenv = {{ TOKEN = \"${{file:{}}}\" }}\n\
         [servers.old]\nurl = \"https://mcp.example.com/events\"\ntransport = \"sse\"\n",
        server("fixture"),
        secret.display()
    );
    lockhouse.config(&config).policy("version = 1\n")
}

#[tokio::test]
async fn each_check_of_the_enterprise_profile_fails_with_what_to_do_and_passes_on_a_managed_host() {
    if !can_mount() {
        return;
    }
    let lockhouse = careless();
    let mut table = Table::new("the checklist");
    let failed = doctor(&lockhouse, &[]);
    table.row("a careless host: the exit status", equal(failed.status, Some(7)));
    insta::assert_snapshot!("careless_host", normalized(&lockhouse, &failed));

    let lockhouse = Lockhouse::new().config(&server("fixture")).policy("version = 1\n");
    require(&lockhouse, &hardened(&lockhouse));
    let away = doctor(&lockhouse, &["--json"]).json();
    let of = |id: &str| {
        away["checks"].as_array().unwrap().iter().find(|check| check["check"] == id).unwrap().clone()
    };
    let is_told = of("audit_sink")["found"].as_str().is_some_and(|found| found.contains("cannot be reached"));
    table.row("a sink that is away", ensure(is_told && away["passes"] == false, &away));

    let sink = start_sink(&lockhouse).await;
    let passed = doctor(&lockhouse, &[]);
    insta::assert_snapshot!("managed_host", normalized(&lockhouse, &passed));
    let json = doctor(&lockhouse, &["--json"]);
    let checks = json.json();
    // The kernel of this host may lack protections.
    let of_kernel = ["sandbox", "server_sandbox"];
    for check in checks["checks"].as_array().unwrap() {
        let passes = check["passes"] == true || of_kernel.iter().any(|id| check["check"] == *id);
        table.row(format!("a managed host: {}", check["check"]), ensure(passes, check));
    }
    let status = if checks["passes"] == true { Some(0) } else { Some(7) };
    table.row("the exit status", equal((passed.status, json.status), (status, status)));
    drop(sink);
    table.finish();
}

#[tokio::test]
async fn who_approves_is_checked_with_what_asks_for_a_password() {
    if !can_mount() {
        return;
    }
    let lockhouse = Lockhouse::new().config(&server("fixture")).policy("version = 1\n");
    let sudo = lockhouse.file("bin/sudo", "#!/bin/sh\n");
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", sudo.parent().unwrap().display());
    let mut table = Table::new("who approves");
    let password = "engine = \"system\"\n[approvals]\npresence = \"password\"\n";
    for (name, requirements, has_rule, passes, words) in [
        ("engines of people", "", false, false, "every process of the account"),
        ("engines of the system", "engine = \"system\"\n", false, true, "root alone approves"),
        ("a password that nothing asks for", password, false, false, "sudo has no /etc/sudoers.d/lockhouse"),
        ("a password that sudo asks for", password, true, true, "for which sudo asks"),
    ] {
        require(&lockhouse, requirements);
        if has_rule {
            lockhouse.file("etc/sudoers.d/lockhouse", "");
        }
        let words_of_doctor = ["doctor", "--profile", "enterprise", "--json"];
        let mut command = managed(&lockhouse, &lockhouse.command(&words_of_doctor));
        let json = CommandOutput::run(command.env("PATH", &path), b"").json();
        let check = json["checks"].as_array().unwrap().iter().find(|check| check["check"] == "presence");
        let is_found = check.is_some_and(|check| {
            check["passes"] == passes && check["found"].as_str().is_some_and(|found| found.contains(words))
        });
        table.row(name, ensure(is_found, check));
    }
    table.finish();
}

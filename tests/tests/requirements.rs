//! Tests of the administrator's requirements: that they act at once and alone, that nothing of a user lifts them, and what
//! holds in a namespace of the user's own.

mod attempts;
mod broken_files;
mod changes;
mod enterprise_profile;
mod kill_switch;
mod managed_host;
mod many_clients;
mod namespaces;
mod pages;
mod tables;

use std::path::Path;
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Session, fixture_server};
use serde_json::Value;

/// A policy that allows all tools of two servers.
const ALLOW: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[servers.other]\nallow = [\"*\"]\n";
/// A Python program that calls the fixture server.
const ADD: &str = "from fixture import add\nadd(a=40, b=2)[\"sum\"]";

/// Returns a fixture with the server `fixture` in its configuration, and a policy that allows it.
fn lockhouse() -> Lockhouse {
    Lockhouse::new().config(&server("fixture")).policy(ALLOW)
}

/// Returns the table of the fixture server as the upstream server `name`.
fn server(name: &str) -> String {
    format!("[servers.{name}]\ncommand = {:?}\n", fixture_server())
}

/// Writes the requirements file of a fixture as an administrator does: a whole file replaces the former one.
fn require(lockhouse: &Lockhouse, requirements: &str) {
    let draft = lockhouse.file("etc/lockhouse/draft", requirements);
    std::fs::rename(draft, lockhouse.path("etc/lockhouse/requirements.toml")).unwrap();
}

/// Returns a command to which the requirements file of the fixture applies through the environment, as far as it exists.
fn with_requirements(lockhouse: &Lockhouse, arguments: &[&str]) -> Command {
    let mut command = lockhouse.command(arguments);
    let path = lockhouse.path("etc/lockhouse/requirements.toml");
    if path.exists() {
        command.env("LOCKHOUSE_REQUIREMENTS", path);
    }
    command
}

/// Starts `lockhouse serve` with the requirements of the fixture.
async fn serve(lockhouse: &Lockhouse) -> Session {
    Session::connect(with_requirements(lockhouse, &["serve"]), Session::latest()).await
}

/// Runs a command in a mount namespace in which `/etc` and `/var/lib` are directories of the fixture. `None` if this host
/// permits no such namespace to the tests.
fn run_managed(lockhouse: &Lockhouse, command: &Command) -> CommandOutput {
    CommandOutput::run(&mut managed(lockhouse, command), b"")
}

/// Returns a command in a mount namespace in which `/etc` and `/var/lib` are directories of the fixture.
fn managed(lockhouse: &Lockhouse, command: &Command) -> Command {
    for below in ["etc/lockhouse", "var"] {
        std::fs::create_dir_all(lockhouse.path(below)).unwrap();
    }
    for name in ["passwd", "group", "nsswitch.conf"] {
        let _ = std::fs::copy(Path::new("/etc").join(name), lockhouse.path("etc").join(name));
    }
    let script = "mount --bind \"$1\" /etc && mount --bind \"$2\" /var/lib && shift 2 && exec \"$@\"";
    let mut managed = Command::new("unshare");
    managed.args(["--mount", "sh", "-c", script, "sh"]);
    managed.arg(lockhouse.path("etc")).arg(lockhouse.path("var"));
    managed.arg(command.get_program()).args(command.get_args());
    managed.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    managed.envs(command.get_current_dir().map(|directory| ("PWD", directory)));
    managed.current_dir(lockhouse.path("home"));
    managed
}

/// Whether this host lets the tests mount in a namespace of their own.
fn can_mount() -> bool {
    let mounted = Command::new("unshare").args(["--mount", "mount", "--bind", "/tmp", "/tmp"]).status();
    let can = mounted.is_ok_and(|status| status.success());
    if !can {
        println!("skipped: no mount namespace with an /etc of its own");
    }
    can
}

/// Returns the text of the error of an answer; empty if it has none.
fn error_of(answer: &Value) -> String {
    answer["error"]["message"].as_str().unwrap_or_default().to_owned()
}

//! Tests of upstream servers that a launcher starts in the session of the person, for the engine of the system.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{CommandOutput, Session, Table, ensure, equal, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::host::{Host, OTHER_PERSON, PERSON, can_manage};

const POLICY: &str = "version = 1
[servers.fixture]
allow = [\"add\"]
";

const ADD: &str = "from fixture import add\nadd(a=40, b=2)['sum']";

/// Starts a host with `count` servers of the class `user`: `mine0` and so on. They may read a folder of the person's.
async fn host_with_session_servers(count: usize) -> Host {
    let names = || (0..count).map(|number| format!("mine{number}"));
    let policy: String = names().map(|name| format!("[servers.{name}]\nallow = [\"run\"]\n")).collect();
    let mut host = Host::managed(&(POLICY.to_owned() + &policy)).await;
    host.kill_engine();
    host.write("home/documents/report.txt", "quarterly");
    host.write("home/private.txt", "not for servers");
    host.give_to_person("home");
    let path = host.path("engine/config/lockhouse/config.toml");
    let configured = std::fs::read_to_string(&path).unwrap();
    let server = host.path("tools/shell_server.py");
    let server = |name| {
        format!(
            "[servers.{name}]\ncommand = \"/usr/bin/python3\"\nargs = [{server:?}]\nrun_as = \"user\"\nenv = {{ TOKEN = \"USER-CANARY\" }}\n\
             start = \"lazy\"\nstart_timeout_seconds = 4\nsandbox = {{ profile = \"default\", read = [\"~/documents\"] }}\n"
        )
    };
    let servers: String = names().map(server).collect();
    std::fs::write(&path, configured + &servers).unwrap();
    host.start_engine().await;
    host
}

/// Runs a script in a server of the class `user`.
async fn in_server(client: &Session, number: usize, script: &str) -> Value {
    let code = format!("from mine{number} import run\nrun(script={})", json!(script));
    client.run_code("python", &code).await
}

const LAUNCHER: &str = "lockhouse launcher$";

/// Returns the processes of the person of this host whose command line matches.
pub(super) fn processes(host: &Host, pattern: &str) -> Vec<i32> {
    let found = Command::new("pgrep").args(["-u", &PERSON.to_string(), "-f", pattern]).output().unwrap();
    let found = String::from_utf8_lossy(&found.stdout);
    let home = host.path("home").display().to_string();
    // Other tests have a person with this number too.
    let is_here = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).split('\0').any(|variable| variable == format!("HOME={home}"))
    };
    found.lines().map(|pid| pid.parse().unwrap()).filter(is_here).collect()
}

async fn wait_for_none(what: &str, host: &Host, pattern: &str) {
    wait_until(what, async || processes(host, pattern).is_empty().then_some(())).await;
}

/// Ends the launchers of the person as the agent can.
pub(super) fn kill_launchers(host: &Host) {
    for pid in processes(host, LAUNCHER) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_runs_in_the_session_of_the_person() {
    if !can_manage() {
        return;
    }
    let mut host = host_with_session_servers(1).await;
    let own_server = host.path("tools/shell_server.py").display().to_string();
    let mut table = Table::new("a server of the class user");
    let client = host.client().await;
    for (name, script, status, output) in [
        ("its account", "id -u", 0, format!("{PERSON}\n")),
        ("its secret", "printenv TOKEN", 0, "USER-CANARY\n".to_owned()),
        ("a folder that it was granted", "cat ~/documents/report.txt", 0, "quarterly".to_owned()),
        ("the person's home", "cat ~/private.txt 2>/dev/null", 1, String::new()),
        ("its output by name", "echo out > /dev/stdout", 0, "out\n".to_owned()),
    ] {
        let answer = in_server(&client, 0, script).await;
        table.row(name, equal(answer["value"].clone(), json!({"status": status, "output": output})));
    }
    table.row(
        "control: the engine's own server",
        equal(client.run_code("python", ADD).await["value"].clone(), 42.into()),
    );
    table.row("it runs once", equal(processes(&host, &own_server).len(), 1));
    let second = CommandOutput::run(&mut host.lockhouse_as(PERSON, &["launcher"]), b"");
    table.row("one launcher waits, a second one ends", equal(second.status, Some(0)));
    let other = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1] + '/launcher.sock'); print(s.recv(1))";
    let other = format!("python3 -c \"{other}\" $SOCKETS");
    let refused = CommandOutput::run(&mut host.shell_as(OTHER_PERSON, &other), b"");
    table.row("another person is no launcher", equal(refused.stdout.clone(), "b''\n".to_owned()));
    kill_launchers(&host);
    wait_for_none("the server ends with its launcher", &host, &own_server).await;
    let next = host.client().await;
    let again = in_server(&client, 0, "id -u").await;
    table.row("the next client brings a launcher", equal(again["value"]["status"].clone(), 0.into()));
    drop(next);
    host.kill_engine();
    wait_for_none("the server ends with the engine", &host, &own_server).await;
    wait_for_none("the launcher ends with the engine", &host, LAUNCHER).await;
    host.start_engine().await;
    let again = in_server(&client, 0, "id -u").await;
    table.row(
        "the clients of the next engine bring a launcher",
        equal(again["value"]["status"].clone(), 0.into()),
    );
    drop(client);
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_the_first_handshake_starts_in_the_session() {
    if !can_manage() {
        return;
    }
    let mut host = host_with_session_servers(1).await;
    host.kill_engine();
    let path = host.path("engine/config/lockhouse/config.toml");
    let configured = std::fs::read_to_string(&path).unwrap();
    // Half of the time passes before the engine starts it again with the older handshake.
    let quiet = configured.replace("TOKEN = \"USER-CANARY\"", "QUIET = \"1\"");
    std::fs::write(&path, quiet.replace("start_timeout_seconds = 4", "start_timeout_seconds = 10")).unwrap();
    host.start_engine().await;
    let client = host.client().await;
    let answer = in_server(&client, 0, "printenv QUIET").await;
    assert_eq!(answer["value"], json!({"status": 0, "output": "1\n"}), "{answer} {}", host.engine_log());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_launcher_stays_when_no_launcher_is_left() {
    if !can_manage() {
        return;
    }
    let host = host_with_session_servers(2).await;
    host.write("tools/hostile_launcher.py", include_str!("hostile_launcher.py"));
    let client = host.client().await;
    let error = async |number| {
        let answer = in_server(&client, number, "true").await;
        answer["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let (reason, missing) =
        ("as the launcher in the session of its user says: [2Jgone", "no launcher is connected");
    let mut table = Table::new("why a server is not available");
    let has_launcher = async || (!processes(&host, LAUNCHER).is_empty()).then_some(());
    wait_until("the client brings a launcher", has_launcher).await;
    kill_launchers(&host);
    wait_for_none("the launcher of the client ends", &host, LAUNCHER).await;
    let launcher = HostileLauncher::start(&host, "control characters");
    let first = error(0).await;
    table.row("the launcher's reason", ensure(first.contains(reason), &first));
    let later = async || Some(error(0).await).filter(|error| error.contains(missing));
    let later = wait_until("the server is tried without a launcher", later).await;
    table.row("it stays", ensure(later.contains(reason), &later));
    let other = error(1).await;
    let is_alone = other.contains(missing) && !other.contains("says");
    table.row("control: a server that no launcher has tried", ensure(is_alone, &other));
    drop(launcher);
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_launcher_sends_harms_the_engine() {
    if !can_manage() {
        return;
    }
    let mut host = host_with_session_servers(11).await;
    host.write("tools/hostile_launcher.py", include_str!("hostile_launcher.py"));
    let mut table = Table::new("a hostile launcher");
    let client = host.client().await;
    let served = in_server(&client, 0, "true").await;
    table.row("control: the launcher of the client", equal(served["value"]["status"].clone(), 0.into()));
    let engine = host.engine().unwrap_or_default();
    let descriptors = || std::fs::read_dir(format!("/proc/{engine}/fd")).map_or(0, Iterator::count);
    let before = descriptors();
    let modes = [
        "takes the secret",
        "garbage",
        "an endless report",
        "an end before the start",
        "control characters",
        "descriptors",
        "blocking pipes",
        "endless output",
        "wild status",
        "many connections",
    ];
    for (number, mode) in modes.into_iter().enumerate() {
        kill_launchers(&host);
        let mut hostile = HostileLauncher::start(&host, mode);
        let failed = in_server(&client, number + 1, "true").await;
        let message = failed["error"]["message"].as_str().unwrap_or_default().to_owned();
        let is_plain = !message.contains(['\x1b', '\r']) && message.len() < 2_000;
        let is_expected = message.contains(&format!("server mine{} is not available", number + 1));
        table.row(format!("{mode}: the call fails"), ensure(is_expected && is_plain, &failed));
        if mode == "takes the secret" {
            table.row(
                "the agent can read it: docs/managed-host.md",
                equal(hostile.line(), "USER-CANARY".to_owned()),
            );
        }
        let other = client.run_code("python", ADD).await;
        table.row(format!("{mode}: other servers answer"), equal(other["value"].clone(), 42.into()));
    }
    table.row("the engine runs", ensure(host.engine_runs(), host.engine_log()));
    let log = host.engine_log();
    table.row("what it says is logged without controls", ensure(log.contains("says: [2Jgonexxx"), log));
    wait_until("the engine keeps no descriptor", async || (descriptors() <= before + 2).then_some(())).await;
    table.finish();
}

pub(super) struct HostileLauncher {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl HostileLauncher {
    /// Starts the launcher, and waits until it has connected.
    pub(super) fn start(host: &Host, mode: &str) -> Self {
        let script = format!("exec python3 $TOOLS/hostile_launcher.py $SOCKETS/launcher.sock '{mode}'");
        let mut process = host.shell_as(PERSON, &script).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut hostile = Self { process, output };
        assert_eq!(hostile.line(), "connected");
        hostile
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for HostileLauncher {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

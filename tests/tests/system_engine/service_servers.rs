//! Tests of upstream servers that another service starts, in accounts of their own.

use std::process::{Child, Command, Stdio};

use lockhouse_tests::{CommandOutput, Table, ensure, equal, fixture_server, wait_until};
use serde_json::json;

use super::host::{ENGINE, Host, PERSON, can_manage};

const SERVICE: u32 = 991;
const POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n[servers.tickets]\nallow = [\"*\"]\n";
const ENV: &str = "import tickets\ntickets.env()['TOKEN']";

struct Service(Child);

impl Service {
    /// Starts the service at a socket in `/run/lockhouse-servers` of the host, for which the engine has the right to connect.
    async fn start(host: &Host) -> Self {
        let directory = host.path("run/lockhouse-servers");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::copy(fixture_server(), host.path("tools/server")).unwrap();
        let (socket, account) = (directory.join("tickets.sock"), SERVICE.to_string());
        let mut command = Command::new("python3");
        command.arg(host.path("tools/accept.py")).arg(&socket).arg(ENGINE.to_string());
        command.args(["setpriv", "--reuid", &account, "--regid", &account, "--clear-groups"]);
        command.arg(host.path("tools/server")).env("TOKEN", "SERVICE-CANARY").stdin(Stdio::null());
        let service = Self(command.spawn().unwrap());
        wait_until("the service listens", async || {
            std::os::unix::net::UnixStream::connect(&socket).ok().map(drop)
        })
        .await;
        service
    }

    /// Returns the servers that the service has started.
    fn servers(&self) -> Vec<u32> {
        let found = Command::new("pgrep").args(["-P", &self.0.id().to_string()]).output().unwrap();
        String::from_utf8_lossy(&found.stdout).lines().map(|pid| pid.parse().unwrap()).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_behind_a_socket_is_out_of_the_agents_reach() {
    if !can_manage() {
        return;
    }
    let mut host = Host::managed(POLICY).await;
    let service = Service::start(&host).await;
    let before = host.path("engine/config/lockhouse/config.toml");
    let configured = std::fs::read_to_string(&before).unwrap();
    let with = |url: &str| {
        format!("{configured}[servers.tickets]\nurl = \"unix:{url}\"\nstart_timeout_seconds = 5\n")
    };
    host.kill_engine();
    std::fs::write(&before, with("/run/lockhouse-servers/tickets.sock")).unwrap();
    host.start_engine().await;
    let mut table = Table::new("a server of the class service");
    let client = host.client().await;
    let answer = client.run_code("python", ENV).await;
    table.row("its tool has its secret", equal(answer["value"].clone(), json!("SERVICE-CANARY")));
    let servers: Vec<u32> = service.servers().into_iter().filter(|pid| is_running(*pid)).collect();
    table.row("one server runs, for the engine", equal(servers.len(), 1));
    let server = servers.first().copied().unwrap_or_default();
    let account = std::fs::read_to_string(format!("/proc/{server}/status")).unwrap_or_default();
    table.row("in its own account", ensure(account.contains(&format!("Uid:\t{SERVICE}\t")), account));
    let agent = |script: &str| CommandOutput::run(&mut host.shell_as(PERSON, script), b"");
    for (name, script) in [
        ("connect to it", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"/run/lockhouse-servers/tickets.sock\")'".to_owned()),
        ("read its environment", format!("grep -q CANARY /proc/{server}/environ")),
        ("end it", format!("kill -9 {server}")),
        ("read its descriptors", format!("ls /proc/{server}/fd")),
        ("replace its socket", "rm -f /run/lockhouse-servers/tickets.sock && ! test -e /run/lockhouse-servers/tickets.sock".to_owned()),
    ] {
        let attempt = agent(&script);
        table.row(format!("the agent cannot {name}"), ensure(attempt.status != Some(0), &attempt));
    }
    host.kill_engine();
    let ended =
        wait_until("the server ends with the connection", async || (!is_running(server)).then_some(()));
    ended.await;
    std::fs::create_dir_all(host.path("home/servers")).unwrap();
    std::os::unix::fs::chown(host.path("home/servers"), Some(PERSON), Some(PERSON)).unwrap();
    let own = host.path("home/servers/tickets.sock").display().to_string();
    std::fs::write(&before, with(&own)).unwrap();
    host.start_engine().await;
    let refused = host.client().await.run_code("python", ENV).await;
    let message = refused["error"]["message"].as_str().unwrap_or_default().to_owned();
    table.row(
        "no socket that the person could replace is used",
        ensure(message.contains("could replace it"), &refused),
    );
    table.finish();
}

/// Whether a process runs, and is no zombie.
fn is_running(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("State:") && !status.contains("State:\tZ")
}

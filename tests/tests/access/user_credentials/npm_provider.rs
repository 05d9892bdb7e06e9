//! Tests of users with credentials of their own, with an authorization server of others: oidc-provider of npm, also for token exchange.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use futures_util::future::join_all;
use lockhouse_tests::{Daemon, Issuer, Lockhouse, Signer, Table, equal, free_port};
use serde_json::{Value, json};

use super::KEY;
use super::browser::Browser;
use crate::access::token;

const AUDIENCE: &str = "https://lockhouse.example.com/mcp";

/// A process of `tests/logins/server.mjs`.
pub(crate) struct NpmServer {
    process: Child,
    /// Kept open: the server ends if it cannot write.
    _output: BufReader<ChildStdout>,
    pub(crate) base: String,
}

impl NpmServer {
    /// Starts a server. `None` if `tests/logins/prepare.sh` has not installed what it needs.
    pub(crate) fn start(keys: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        if !root.join("build/logins/stamp").exists() {
            println!("left out, since `make prepare-logins` has not installed the authorization server");
            return None;
        }
        let own = root.join("build/logins/node_modules/.bin/node");
        let node = if own.exists() { own } else { PathBuf::from("node") };
        let mut command = Command::new(node);
        command.arg(root.join("tests/logins/server.mjs")).arg(keys);
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Node.js is started");
        let mut base = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("it is piped"));
        output.read_line(&mut base).expect("the address");
        Some(Self { process, _output: output, base: base.trim_end().to_owned() })
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let response = client.get(format!("{}{path}", self.base)).send().await.expect("an answer");
        response.json().await.expect("JSON")
    }

    pub(crate) async fn figure(&self, name: &str) -> u64 {
        self.get("/figures").await[name].as_u64().expect("a number")
    }
}

impl Drop for NpmServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn sum(servers: &[NpmServer], name: &str) -> u64 {
    join_all(servers.iter().map(|server| server.figure(name))).await.iter().sum()
}

/// Returns whom each of the servers took for the caller of a program of this user, or the error.
async fn callers(daemon: &Daemon, name: &str, token: &str, servers: usize) -> Value {
    let code = format!(
        "from mcp_tools import ToolError, call_tool\nfound = []\nfor n in range({servers}):\n    \
         try: found.append(str(call_tool(f's{{n}}', 'look', {{'at': '{name}'}})))\n    except ToolError as e: found.append(e.code)\nfound"
    );
    daemon.http_client(Some(token)).run_code("python", &code).await["value"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn users_log_in_at_an_authorization_server_of_npm() {
    let (names, count, runs) = (["ada", "bob", "cy"], 2, 4);
    let Some(servers) = (0..count).map(|_| NpmServer::start("")).collect::<Option<Vec<_>>>() else { return };
    let port = free_port();
    let mut config =
        format!("[users]\nkey = \"${{cred:lockhouse-users}}\"\nurl = \"http://127.0.0.1:{port}\"\n");
    let mut policy = "version = 1\n".to_owned();
    for (number, server) in servers.iter().enumerate() {
        config += &format!("[servers.s{number}]\nurl = \"{}/mcp\"\nauth = \"per_user\"\n", server.base);
        policy += &format!("[servers.s{number}]\nallow = [\"*\"]\n");
    }
    let lockhouse = Lockhouse::new().config(&config).policy(&policy);
    lockhouse.file("credentials/lockhouse-users", KEY);
    let users = names.map(|name| (name, token(&lockhouse, &[name])));
    let start = || async {
        let mut command = lockhouse.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]);
        command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
        Daemon::open(command).await
    };
    let mut daemon = Some(start().await);
    let mut table = Table::new("logins at oidc-provider");
    for (name, token) in &users {
        for number in 0..count {
            let page = format!("http://127.0.0.1:{port}/login/s{number}");
            let shown = Browser::default().log_in(&page, token, None, name).await;
            table.row(
                format!("{name} logs in to s{number}"),
                equal(shown.contains("You are logged in"), true),
            );
        }
    }
    for round in ["first", "second", "third"] {
        let running = match daemon.take() {
            Some(running) => running,
            None => start().await,
        };
        let all = users.iter().map(|(name, token)| {
            let running = &running;
            async move { join_all((0..runs).map(|_| callers(running, name, token, count))).await }
        });
        for ((name, _), found) in users.iter().zip(join_all(all).await) {
            table.row(format!("{name}, {round} round"), equal(found, vec![json!(vec![name; count]); runs]));
        }
        for server in &servers {
            server.get("/expire").await;
        }
        running.kill().await;
    }
    let calls = (3 * runs * count * users.len()) as u64;
    table.row("calls at the servers", equal(sum(&servers, "calls").await, calls));
    table.row(
        "renewals at the servers",
        equal(sum(&servers, "renewals").await, (2 * count * users.len()) as u64),
    );
    table.row("calls with the credential of another user", equal(sum(&servers, "crossed").await, 0));

    let daemon = start().await;
    let wrong = "from mcp_tools import call_tool\nstr(call_tool('s0', 'look', {'at': 'somebody else'}))";
    daemon.http_client(Some(&users[0].1)).run_code("python", wrong).await;
    table.row("control: the servers see a wrong user", equal(servers[0].figure("crossed").await, 1));

    let before = sum(&servers, "revocations").await;
    let (ada, bob) = (&users[0], &users[1]);
    Browser::default().log_out(&format!("http://127.0.0.1:{port}/login/s0"), &ada.1).await;
    table.row("a logout revokes", equal(sum(&servers, "revocations").await > before, true));
    table.row(
        "after the logout",
        equal(callers(&daemon, ada.0, &ada.1, count).await, json!(["login_required", "ada"])),
    );
    table.row(
        "control: another user",
        equal(callers(&daemon, bob.0, &bob.1, count).await, json!(["bob", "bob"])),
    );
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_exchanged_at_an_authorization_server_of_npm() {
    let signer = Signer::es256("k1");
    let issuer = Issuer::start(&[&signer]);
    let Some(server) = NpmServer::start(&format!("{}/jwks", issuer.name().trim_end_matches('/'))) else {
        return;
    };
    let config = |keys: &str| {
        format!(
            "[http]\nauth = \"oauth\"\n[http.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n[http.oauth.scopes]\nall = [\"*\"]\n\
             [users]\nkey = \"${{cred:lockhouse-users}}\"\nexchange_url = \"{}/token\"\nexchange_client = \"lockhouse\"\n\
             exchange_secret = \"${{cred:exchange}}\"\n[servers.s0]\nurl = \"{}/mcp\"\nauth = \"per_user\"\nexchange = \"token\"\n{keys}",
            issuer.name(),
            server.base,
            server.base
        )
    };
    let mut table = Table::new("token exchange at oidc-provider");
    for (keys, exchanges) in [("", 2), ("token = \"per_run\"\n", 6)] {
        let lockhouse =
            Lockhouse::new().config(&config(keys)).policy("version = 1\n[servers.s0]\nallow = [\"*\"]\n");
        lockhouse.file("credentials/lockhouse-users", KEY);
        lockhouse.file("credentials/exchange", "exchange-secret");
        let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
        let daemon = Daemon::open(command).await;
        let before = server.figure("exchanges").await;
        for name in ["ada", "bob"] {
            let token = signer.sign(&issuer.claims(name, AUDIENCE, "all"));
            for run in 1..=3 {
                let found = callers(&daemon, name, &token, 1).await;
                table.row(format!("{keys:?}: {name}, run {run}"), equal(found, json!([name])));
            }
        }
        let made = server.figure("exchanges").await - before;
        table.row(format!("{keys:?}: exchanges"), equal(made, exchanges));
    }
    table.row("calls with the credential of another user", equal(server.figure("crossed").await, 0));
    table.finish();
}

//! Three hosts of one cluster on this machine.

use lockhouse_tests::{Daemon, HttpClient, Lockhouse, free_port, wait_until};
use serde_json::{Value, json};

use super::nats::Nats;

pub(super) const HOSTS: usize = 3;

/// The file with the tokens of a host.
const TOKENS: &str = "config/lockhouse/tokens.json";

/// Hosts with the same policy and copies of the same tokens, each with a state of its own.
pub(super) struct Hosts {
    pub(super) lockhouses: [Lockhouse; HOSTS],
    pub(super) daemons: [Option<Daemon>; HOSTS],
    /// The ports at which the hosts accept each other.
    pub(super) ports: [u16; HOSTS],
    /// The ports at which the hosts serve clients.
    pub(super) listening: [u16; HOSTS],
    pub(super) token: String,
    /// The token of another client.
    pub(super) other_token: String,
}

impl Hosts {
    /// Starts the hosts, and waits until each knows the others. `HOST` in `config` is the name of the host, and `PORT` that at which it
    /// serves clients. Secrets of a host are in its folder `credentials`.
    pub(super) async fn start(nats: &Nats, config: &str, change: impl Fn(Lockhouse) -> Lockhouse) -> Self {
        Self::start_with(nats, "", config, change).await
    }

    /// Starts the hosts as [`Self::start`], with further keys of `[http]`.
    pub(super) async fn start_with(
        nats: &Nats,
        http: &str,
        config: &str,
        change: impl Fn(Lockhouse) -> Lockhouse,
    ) -> Self {
        let (ports, listening) = ([(); HOSTS].map(|()| free_port()), [(); HOSTS].map(|()| free_port()));
        let mut number = 0;
        let lockhouses = ports.map(|port| {
            let text = format!(
                "[http]\ntokens = \"tokens.json\"\n{http}[cluster]\nname = \"h{number}\"\nnats = [\"{}\"]\nlisten = \"127.0.0.1:{port}\"\n{}",
                nats.url(),
                config.replace("HOST", &format!("h{number}")).replace("PORT", &listening[number].to_string()),
            );
            number += 1;
            change(Lockhouse::with_fixture().config(&text))
        });
        let create = |name| lockhouses[0].run(&["token", "create", name]).stdout.trim_end().to_owned();
        let (token, other_token) = (create("desk"), create("other"));
        for other in &lockhouses[1..] {
            let tokens = std::fs::read(lockhouses[0].path(TOKENS)).expect("tokens");
            other.file(TOKENS, tokens);
        }
        let mut hosts =
            Self { lockhouses, daemons: [None, None, None], ports, listening, token, other_token };
        for number in 0..HOSTS {
            hosts.start_host(number).await;
        }
        hosts.know_each_other().await;
        hosts
    }

    /// Starts a host that does not run.
    pub(super) async fn start_host(&mut self, number: usize) {
        let lockhouse = &self.lockhouses[number];
        let mut command =
            lockhouse.command(&["serve", "--listen", &format!("127.0.0.1:{}", self.listening[number])]);
        command.env("CREDENTIALS_DIRECTORY", lockhouse.path("credentials"));
        self.daemons[number] = Some(Daemon::open(command).await);
    }

    /// Waits until each host knows the others: a value of each is found from each.
    async fn know_each_other(&self) {
        for one in 0..HOSTS {
            let handle = self.stored_value(one).await;
            for other in 0..HOSTS {
                wait_until("the hosts know each other", async || {
                    let arguments = json!({"handle": handle});
                    let answer = self.client(other).call("get_result", arguments).await;
                    (answer["error"].is_null()).then_some(())
                })
                .await;
            }
        }
    }

    /// Returns the client at a host.
    pub(super) fn client(&self, host: usize) -> HttpClient {
        self.daemons[host].as_ref().expect("it runs").http_client(Some(&self.token))
    }

    /// Returns another client at a host.
    pub(super) fn other_client(&self, host: usize) -> HttpClient {
        self.daemons[host].as_ref().expect("it runs").http_client(Some(&self.other_token))
    }

    /// Returns the address of a host.
    pub(super) fn address(&self, host: usize) -> String {
        self.daemons[host].as_ref().expect("it runs").address()
    }

    /// Returns the URL of a host.
    pub(super) fn url(&self, host: usize) -> String {
        self.daemons[host].as_ref().expect("it runs").url("/mcp")
    }

    /// Returns the handle of a value that a host has stored.
    pub(super) async fn stored_value(&self, host: usize) -> String {
        let answer = self.client(host).run_code("python", LONG).await;
        stored_handle(&answer)
    }

    /// Runs code in a session at a host.
    pub(super) async fn run_in(&self, host: usize, session: &str, code: &str) -> Value {
        let arguments = json!({"language": "python", "code": code, "session": session});
        self.client(host).call("run_code", arguments).await
    }
}

/// A program with a value that is too long to be shown.
pub(super) const LONG: &str = "'x' * 50_000 + 'end'";

/// Returns the handle under which an answer says that its value is stored.
pub(super) fn stored_handle(answer: &Value) -> String {
    let handle = answer["truncated"]["value"]["handle"].as_str();
    handle.unwrap_or_else(|| panic!("no handle: {answer}")).to_owned()
}

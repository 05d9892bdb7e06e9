//! Tests of two hosts behind a balancer, with the configurations of `packaging/balancers`: clients keep their sessions and runs, events
//! come as they are sent, and no program runs twice when a host drains or is killed.

pub(crate) mod balancer;
pub(crate) mod doctor;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use lockhouse_tests::{
    Daemon, HttpAnswer, HttpClient, HttpRequest, HttpServer, Lockhouse, Table, ensure, equal, free_port,
    wait_until,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use balancer::{Balancer, Kind, NAME};

/// Enough that both hosts have several of them.
const CLIENTS: usize = 24;
/// Requests while a host drains.
const REQUESTS: usize = 30;

/// Two hosts with the same tokens and one upstream server, behind a balancer.
struct Hosts {
    balancer: Balancer,
    lockhouses: [Lockhouse; 2],
    daemons: [Option<Daemon>; 2],
    addresses: [String; 2],
    /// Names and tokens of clients.
    clients: Vec<(String, String)>,
    upstream: HttpServer,
    /// The clients of each host.
    owners: [Vec<String>; 2],
    /// Whether programs that wait may go on.
    is_open: Arc<AtomicBool>,
    _tokens: Lockhouse,
}

impl Hosts {
    /// Starts both hosts, and waits until the balancer uses them.
    async fn start(kind: Kind, change: impl Fn(String) -> String) -> Option<Self> {
        let mut hosts = Self::start_unsettled(kind, change).await?;
        hosts.settle().await;
        Some(hosts)
    }

    /// Starts both hosts, before the balancer.
    async fn start_unsettled(kind: Kind, change: impl Fn(String) -> String) -> Option<Self> {
        let is_open = Arc::<AtomicBool>::default();
        let answers_open = is_open.clone();
        let upstream = HttpServer::start(move |request: &HttpRequest| {
            request.as_mcp(false).unwrap_or_else(|| {
                let text = if answers_open.load(Ordering::SeqCst) { "open" } else { "closed" };
                HttpAnswer::json(200, &request.result(&json!({"content": [{"type": "text", "text": text}]})))
            })
        });
        let tokens = Lockhouse::new();
        let file = tokens.path("tokens.json").display().to_string();
        let config = format!(
            "[http]\ntokens = \"{file}\"\nhosts = [\"{NAME}\", \"127.0.0.1\"]\nbehind_proxy = true\ntrusted_proxies = [\"127.0.0.1\"]\n\
             [runs]\nwait_seconds = 1.5\n[sessions]\nmax = 32\n[servers.gate]\nurl = \"{}\"\n",
            upstream.url("/mcp")
        );
        let policy = "version = 1\n[servers.gate]\nallow = [\"*\"]\n";
        let lockhouses = [0, 1].map(|_| Lockhouse::new().config(&config).policy(policy));
        let names = (0..CLIENTS).map(|number| format!("client-{number}"));
        let create = |name: &str| lockhouses[0].run(&["token", "create", name]).stdout.trim_end().to_owned();
        let clients = names.map(|name| (name.clone(), create(&name))).collect();
        let addresses = [0, 1].map(|_| format!("127.0.0.1:{}", free_port()));
        let daemons =
            [serve_at(&lockhouses[0], &addresses[0]).await, serve_at(&lockhouses[1], &addresses[1]).await];
        let balancer = Balancer::start(kind, &addresses, change).await?;
        Some(Self {
            balancer,
            lockhouses,
            daemons: daemons.map(Some),
            addresses,
            clients,
            upstream,
            owners: Default::default(),
            is_open,
            _tokens: tokens,
        })
    }

    async fn start_host(&mut self, host: usize) {
        self.daemons[host] = Some(serve_at(&self.lockhouses[host], &self.addresses[host]).await);
    }

    /// Waits until the balancer has found both hosts, and each client stays at one.
    async fn settle(&mut self) {
        self.owners = wait_until("each client has a host", async || {
            let before = self.sweep().await?;
            let after = self.sweep().await?;
            (before == after && after.iter().all(|owners| owners.len() >= 3)).then_some(after)
        })
        .await;
    }

    /// Lets each client run a program. Returns the clients of each host, unless a request fails.
    async fn sweep(&self) -> Option<[Vec<String>; 2]> {
        let before = [0, 1].map(|host| self.lockhouses[host].records().len());
        let answers = join_all(self.clients.iter().map(|(name, _)| self.status(name))).await;
        let owners = [0, 1].map(|host| {
            let records = self.lockhouses[host].records();
            let names = records[before[host]..].iter().filter_map(|record| record["client"].as_str());
            let mut names: Vec<String> = names.map(str::to_owned).collect();
            names.sort();
            names.dedup();
            names
        });
        answers.iter().all(|status| *status == 200).then_some(owners)
    }

    /// Returns a client that has its own connections to the balancer.
    fn client(&self, name: &str) -> HttpClient {
        let token = &self.clients.iter().find(|(known, _)| known == name).expect("a client").1;
        let Balancer { port, certificate, .. } = &self.balancer;
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate.clone()]);
        let client = client.resolve(NAME, ([127, 0, 0, 1], *port).into()).build().expect("a client");
        HttpClient::with_client(client, &format!("https://{NAME}:{port}/mcp"), Some(token))
    }

    /// Runs a short program. Returns the status of HTTP, or 0 without an answer.
    async fn status(&self, name: &str) -> u16 {
        let client = self.client(name);
        let message = client.calling("run_code", json!({"language": "python", "code": "1"}));
        client.try_post(&message).await.map_or(0, |reply| reply.status)
    }

    /// Returns how often each program called the server for the first time, by what the program says of itself.
    fn calls(&self) -> BTreeMap<String, usize> {
        let requests = self.upstream.requests();
        let calls = requests.iter().filter(|request| request.rpc() == "tools/call");
        let names =
            calls.filter_map(|call| call.message()["params"]["arguments"]["at"].as_str().map(str::to_owned));
        names.filter(|name| name != "gate").fold(BTreeMap::new(), |mut counts, name| {
            *counts.entry(name).or_default() += 1;
            counts
        })
    }

    /// Returns how often each program of a round called the server.
    fn calls_of(&self, round: &str) -> Vec<usize> {
        let calls = self.calls();
        calls
            .iter()
            .filter(|(name, _)| name.starts_with(&format!("{round}-")))
            .map(|(_, count)| *count)
            .collect()
    }

    /// Starts a program for each of the clients, which calls the server once and waits until it may go on. Returns when all wait.
    async fn start_programs(
        &self,
        round: &str,
        names: &[String],
    ) -> Vec<tokio::task::JoinHandle<Option<Value>>> {
        self.is_open.store(false, Ordering::SeqCst);
        let running = names.iter().map(|name| {
            let client = self.client(name);
            let code = format!(
                "from mcp_tools import call_tool\nimport time\ncall_tool('gate', 'look', {{'at': '{round}-{name}'}})\n\
                 while str(call_tool('gate', 'look', {{'at': 'gate'}})) != 'open': time.sleep(0.1)\n'{name}'"
            );
            tokio::spawn(async move { run_to_end(&client, &code).await })
        });
        let running: Vec<_> = running.collect();
        wait_until("the programs run", async || {
            let calls = self.calls();
            names.iter().all(|name| calls.contains_key(&format!("{round}-{name}"))).then_some(())
        })
        .await;
        running
    }
}

async fn serve_at(lockhouse: &Lockhouse, address: &str) -> Daemon {
    Daemon::open(lockhouse.command(&["serve", "--listen", address])).await
}

/// Runs a program and waits for its value. `None` if a connection fails or an answer is not that of a run.
async fn run_to_end(client: &HttpClient, code: &str) -> Option<Value> {
    let mut message = client.calling("run_code", json!({"language": "python", "code": code}));
    loop {
        let reply = client.try_post(&message).await.ok()?;
        let answer = reply.answer()["result"]["structuredContent"].clone();
        match answer["status"].as_str()? {
            "running" => {
                message = client.calling("get_result", json!({"handle": answer["handle"], "wait_s": 60}))
            }
            _ => return Some(answer["value"].clone()),
        }
    }
}

async fn clients_keep_what_is_theirs(table: &mut Table, hosts: &Hosts) {
    let sessions = hosts.clients.iter().map(|(name, _)| async move {
        let client = hosts.client(name);
        let mut found = Vec::new();
        for code in [format!("x = '{name}'"), "x".to_owned(), "x".to_owned()] {
            let arguments = json!({"language": "python", "code": code, "session": "s"});
            found.push(client.call("run_code", arguments).await["value"].clone());
        }
        (found[1..] == [json!(name), json!(name)], found)
    });
    let found = join_all(sessions).await;
    let wrong: Vec<_> = found.iter().filter(|(is_right, _)| !is_right).collect();
    table.row("sessions of code", ensure(wrong.is_empty(), &wrong));
    let [one, two] = &hosts.owners;
    let both: Vec<&String> = one.iter().filter(|name| two.contains(name)).collect();
    table.row("each client has one host", ensure(both.is_empty(), &both));

    let client = hosts.client(&one[0]);
    let code = "import time\ntime.sleep(2)\n42";
    table.row("a run in the background", equal(run_to_end(&client, code).await, Some(json!(42))));
    let (session, reply) = hosts.client(&two[0]).initialize("2025-11-25").await;
    table.row("initialize of 2025-11-25", equal(reply.status, 200));
    for _ in 0..3 {
        table.row(
            "a request of its session",
            equal(session.request("tools/list", json!({})).await.status, 200),
        );
    }
}

async fn events_come_as_they_are_sent(table: &mut Table, hosts: &Hosts) {
    hosts.is_open.store(false, Ordering::SeqCst);
    let client = hosts.client("client-0");
    let code = "from mcp_tools import call_tool\nimport time\n\
                while str(call_tool('gate', 'look', {'at': 'gate'})) != 'open': time.sleep(0.1)\n'done'";
    let mut message = client.calling("run_code", json!({"language": "python", "code": code}));
    message["params"]["_meta"]["progressToken"] = json!("p");
    let mut events = client.open(&message).await;
    // The program ends only after this event has come through the balancer.
    let first = events.next().await.unwrap_or_default();
    table.row("the first event", equal(first["method"].clone(), json!("notifications/progress")));
    hosts.is_open.store(true, Ordering::SeqCst);
    drop(events);
}

async fn a_host_that_drains(table: &mut Table, hosts: &mut Hosts, fails: &[u16]) {
    let names: Vec<String> = hosts.owners.iter().flat_map(|owners| owners.iter().take(3).cloned()).collect();
    let running = hosts.start_programs("drain", &names).await;
    let draining = hosts.daemons[0].take().expect("it runs");
    draining.signal(Signal::SIGTERM);
    draining.wait_for_log("draining").await;
    let mut failed = BTreeMap::new();
    for request in 0..REQUESTS {
        let status = hosts.status(&hosts.clients[request % CLIENTS].0).await;
        if status != 200 {
            *failed.entry(status).or_insert(0) += 1;
        }
    }
    println!("while a host drains, {failed:?} of {REQUESTS} requests fail");
    let unexpected: Vec<_> = failed.keys().filter(|status| !fails.contains(status)).collect();
    table.row("requests while a host drains", ensure(unexpected.is_empty(), &failed));
    hosts.is_open.store(true, Ordering::SeqCst);
    for (name, run) in names.iter().zip(running) {
        table.row(format!("the program of {name}"), equal(run.await.unwrap(), Some(json!(name))));
    }
    table.row("each ran once", equal(hosts.calls_of("drain"), vec![1; names.len()]));
    draining.ended().await;
    hosts.start_host(0).await;
    hosts.settle().await;
}

/// Kills a host with three programs, while the other host has three. Returns the values of those of each, and how often each program
/// called the server.
async fn kill_a_host(hosts: &mut Hosts) -> ([Vec<Option<Value>>; 2], [Vec<String>; 2], Vec<usize>) {
    let [kept, lost] = hosts.owners.clone().map(|owners| owners.into_iter().take(3).collect::<Vec<_>>());
    let running = hosts.start_programs("kill", &[kept.clone(), lost.clone()].concat()).await;
    hosts.daemons[1].take().expect("it runs").kill().await;
    // All requests succeed again, on the other host.
    wait_until("the balancer leaves the host out", async || hosts.sweep().await.map(drop)).await;
    hosts.is_open.store(true, Ordering::SeqCst);
    let mut values: Vec<Option<Value>> = join_all(running).await.into_iter().map(Result::unwrap).collect();
    let of_lost = values.split_off(kept.len());
    ([values, of_lost], [kept, lost], hosts.calls_of("kill"))
}

async fn a_host_that_is_killed(table: &mut Table, hosts: &mut Hosts) {
    let ([kept, lost], [names, _], calls) = kill_a_host(hosts).await;
    let expected: Vec<Option<Value>> = names.iter().map(|name| Some(json!(name))).collect();
    table.row("the programs of the other host", equal(kept, expected));
    table.row("those of the killed host", equal(lost, vec![None; 3]));
    table.row("none ran twice", equal(calls, vec![1; 6]));
}

async fn all(kind: Kind, fails: &[u16]) {
    let Some(mut hosts) = Hosts::start(kind, |text| text).await else { return };
    let mut table = Table::new(&format!("two hosts behind {kind:?}"));
    clients_keep_what_is_theirs(&mut table, &hosts).await;
    events_come_as_they_are_sent(&mut table, &hosts).await;
    a_host_that_drains(&mut table, &mut hosts, fails).await;
    a_host_that_is_killed(&mut table, &mut hosts).await;
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_behind_haproxy() {
    all(Kind::Haproxy, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_behind_nginx() {
    all(Kind::Nginx, &[503]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hosts_behind_caddy() {
    all(Kind::Caddy, &[503]).await;
}

/// The control of those above: the servers see a program that runs twice, because the balancer sends a request again that was run.
#[tokio::test(flavor = "multi_thread")]
async fn a_balancer_that_retries_everything_runs_programs_twice() {
    let retries = |text: String| text.replace("retry-on conn-failure 503", "retry-on all-retryable-errors");
    let Some(mut hosts) = Hosts::start(Kind::Haproxy, retries).await else { return };
    let (_, _, calls) = kill_a_host(&mut hosts).await;
    assert!(calls.iter().any(|count| *count > 1), "{calls:?}");
}

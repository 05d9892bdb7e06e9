//! Hosts that end, are stopped, or cannot reach NATS: what happens is said, and no program runs twice.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockhouse_tests::{
    CommandOutput, HttpAnswer, HttpRequest, HttpServer, Lockhouse, Table, ensure, equal, is_full, wait_until,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::hosts::{HOSTS, Hosts};
use super::nats::Nats;
use super::{CONFIG, message};

/// What depends on NATS says that it is away within a second, and the rest of the request takes a moment.
const REFUSED_WITHIN: Duration = Duration::from_secs(3);
/// Time after which the requests at a host that failed have their answers: 15 s of silence, and some more on a slow machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(25);
/// After this time, a host that was stopped has lost its lease, for itself and for the others.
const LEASE: Duration = Duration::from_secs(32);

/// An upstream server that holds programs until it is opened, and counts their calls.
struct Gate {
    server: HttpServer,
    is_open: Arc<AtomicBool>,
}

impl Gate {
    fn start() -> Self {
        let is_open = Arc::<AtomicBool>::default();
        let answers_open = is_open.clone();
        let server = HttpServer::start(move |request: &HttpRequest| {
            request.as_mcp(false).unwrap_or_else(|| {
                let text = if answers_open.load(Ordering::SeqCst) { "open" } else { "closed" };
                HttpAnswer::json(200, &request.result(&json!({"content": [{"type": "text", "text": text}]})))
            })
        });
        Self { server, is_open }
    }

    fn config(&self) -> String {
        format!("{CONFIG}[servers.gate]\nurl = \"{}\"\n", self.server.url("/mcp"))
    }

    /// Returns how often programs have called the server with this argument.
    fn calls(&self, at: &str) -> usize {
        let requests = self.server.requests();
        let calls = requests.iter().filter(|request| request.rpc() == "tools/call");
        calls.filter(|call| call.message()["params"]["arguments"]["at"] == at).count()
    }
}

/// A program that calls the server once with `name`, and waits until it is open.
fn waiting_program(name: &str) -> String {
    format!(
        "from mcp_tools import call_tool\nimport time\ncall_tool('gate', 'look', {{'at': '{name}'}})\n\
         while str(call_tool('gate', 'look', {{'at': '{name}-wait'}})) != 'open': time.sleep(0.1)\n'{name}'"
    )
}

fn permit_gate(lockhouse: Lockhouse) -> Lockhouse {
    lockhouse.policy("version = 1\n[servers.gate]\nallow = [\"*\"]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_ends_is_lost_and_no_program_runs_twice() {
    let Some(nats) = Nats::start().await else { return };
    let gate = Gate::start();
    let mut hosts = Hosts::start(&nats, &gate.config(), permit_gate).await;
    let mut table = Table::new("a host is killed");
    let value = hosts.stored_value(1).await;
    hosts.run_in(1, "s", "x = 1").await;
    let arguments =
        json!({"language": "python", "code": waiting_program("killed"), "session": "s", "timeout_s": 100});
    let client = hosts.client(0);
    // The request waits longer than the host lives.
    let running = tokio::spawn(async move { client.call("run_code", arguments).await });
    wait_until("the program runs", async || (gate.calls("killed") == 1).then_some(())).await;
    hosts.daemons[1].take().expect("it runs").kill().await;
    let lost = running.await.expect("an answer");
    let words = "The program may have run, in part or completely, and is not started again: check its effects, and repeat it only if \
                 that is safe";
    table.row("the program of the killed host", ensure(message(&lost).contains(words), &lost));
    let gone = hosts.client(0).call("get_result", json!({"handle": value})).await;
    let words = "the host h1 has what this request names, and cannot be reached";
    table.row("its value, before its lease ends", ensure(message(&gone).contains(words), &gone));
    let own = hosts.client(0).run_code("python", "6 * 7").await;
    table.row("control: another program", equal(own["value"].clone(), json!(42)));

    // Another life of the host takes its lease at once.
    hosts.daemons[1] = Some(hosts.lockhouses[1].daemon().await);
    let gone = wait_until("the new life is known", async || {
        let gone = hosts.client(0).call("get_result", json!({"handle": value})).await;
        message(&gone).contains("no host of the cluster has").then_some(gone)
    })
    .await;
    let words = "If it was a run, the run was not started again, and its calls may have been made: check their effects";
    table.row("its value, after that", ensure(message(&gone).contains(words), &gone));
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let task = hosts
        .client(2)
        .with_capabilities(tasks)
        .request("tasks/get", json!({"taskId": value}))
        .await
        .answer();
    let text = task["error"]["message"].as_str().unwrap_or_default();
    table.row("the same as a task", ensure(text.starts_with("no host of the cluster has"), &task));
    let ended = hosts.run_in(2, "s", "x").await;
    let words = "the session \"s\" has ended: the host that had it has ended. Its variables are lost";
    table.row("its session", ensure(message(&ended).contains(words), &ended));
    hosts.run_in(2, "s", "x = 2").await;
    table.row("a new session", equal(hosts.run_in(1, "s", "x").await["value"].clone(), json!(2)));
    gate.is_open.store(true, Ordering::SeqCst);
    table.row("the program ran once", equal(gate.calls("killed"), 1));
    table.finish();
}

/// A host is killed at different moments of a request that another host has passed on: no program runs twice, and one of which an
/// answer says that nothing was run has made no call.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_killed_during_a_request() {
    let rounds: u32 = if is_full() { 200 } else { 5 };
    let Some(nats) = Nats::start().await else { return };
    let gate = Gate::start();
    gate.is_open.store(true, Ordering::SeqCst);
    let mut hosts = Hosts::start(&nats, &gate.config(), permit_gate).await;
    let mut table = Table::new("a host is killed during a request");
    let (mut answered, mut lost, mut not_run, mut wrong) = (0, 0, 0, Vec::new());
    for round in 0..rounds {
        let name = format!("kill-{round}");
        // The session is on h1 from here on.
        wait_until("h1 has the session", async || {
            let begun = hosts.run_in(1, &name, "1").await;
            begun["error"].is_null().then_some(())
        })
        .await;
        // h0 knows the new life of h1, and is connected to it.
        wait_until("h0 reaches h1", async || {
            let begun = hosts.run_in(0, &name, "1").await;
            begun["error"].is_null().then_some(())
        })
        .await;
        let arguments = json!({"language": "python", "code": waiting_program(&name), "session": name});
        let client = hosts.client(0);
        let running = tokio::spawn(async move { client.call("run_code", arguments).await });
        // From before the request has arrived until after its answer.
        tokio::time::sleep(Duration::from_micros(u64::from(round * 7_919 % 40_000))).await;
        hosts.daemons[1].take().expect("it runs").kill().await;
        let answer = running.await.expect("an answer");
        let (calls, text) = (gate.calls(&name), message(&answer));
        let is_right = if answer["value"] == json!(name) {
            answered += 1;
            calls == 1
        } else if text.contains("Nothing was run") {
            not_run += 1;
            calls == 0
        } else {
            lost += 1;
            text.contains("The program may have run") && calls <= 1
        };
        if !is_right {
            wrong.push((round, calls, answer));
        }
        hosts.daemons[1] = Some(hosts.lockhouses[1].daemon().await);
    }
    println!("{rounds} kills: {answered} answered, {lost} lost, {not_run} not run");
    table.row("each program ran once at most, and the answers say what is true", equal(wrong, Vec::new()));
    table.row(
        "control: a program can have all ends",
        ensure(answered + lost + not_run == rounds, (answered, lost, not_run)),
    );
    table.finish();
}

/// How the owner of what requests name fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    /// Its connections stay open, and it answers nothing.
    Stopped,
}

/// A run, a run in the background, a question and a read of a file are under way at another host than the client's when that fails: each
/// has one answer, which says what is true.
#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_request_has_one_answer_when_its_host_fails() {
    let mut table = Table::new("requests at a host that fails");
    let faults = if is_full() { &[Fault::Killed, Fault::Stopped][..] } else { &[Fault::Killed] };
    for fault in faults {
        let Some(nats) = Nats::start().await else { return };
        requests_at_a_host_that_fails(&nats, *fault, &mut table).await;
    }
    table.finish();
}

async fn requests_at_a_host_that_fails(nats: &Nats, fault: Fault, table: &mut Table) {
    let gate = Gate::start();
    let policy = "version = 1\n[servers.gate]\nallow = [\"look\"]\n[servers.fixture]\nallow = [\"*\"]\nask = [\"add\"]\n";
    let config = gate.config() + "[results]\nresource_mib = 64\n";
    let mut hosts = Hosts::start(nats, &config, |lockhouse| lockhouse.policy(policy)).await;
    hosts.run_in(1, "s", "1").await;
    let begun = hosts.client(1).run_code("python", &waiting_program("background")).await;
    let wait = json!({"handle": begun["handle"], "wait_s": 100});
    let client = hosts.client(0);
    let in_background = tokio::spawn(async move { client.call("get_result", wait).await });
    let able = |host: usize| hosts.client(host).with_capabilities(json!({"elicitation": {"form": {}}}));
    let asking = json!({"language": "python", "code": "from mcp_tools import call_tool\ncall_tool('fixture.add', {'a': 1, 'b': 2})"});
    let question =
        able(1).post(&able(1).calling("run_code", asking.clone())).await.answer()["result"].clone();
    let file_bytes = if is_full() { 60_000_000 } else { 4_000_000 };
    let code = format!("open('/out/big.txt', 'w').write('x' * {file_bytes})\n1");
    let mut file = hosts.client(1).run_code("python", &code).await;
    if file["status"] == "running" {
        let ask = json!({"handle": file["handle"], "wait_s": 100});
        file = hosts.client(1).call("get_result", ask).await;
    }
    let uri = format!("lockhouse://result/{}", file["files"][0]["handle"].as_str().unwrap_or_default());
    let read = hosts.client(0).request("resources/read", json!({"uri": uri})).await.answer();
    let length = |read: &Value| read["result"]["contents"][0]["text"].as_str().map(str::len);
    table.row(format!("{fault:?}: control: the file"), equal(length(&read), Some(file_bytes)));
    let client = hosts.client(0);
    let reads = tokio::spawn(async move {
        loop {
            let read = client.request("resources/read", json!({"uri": uri})).await.answer();
            if length(&read) != Some(file_bytes) {
                return read;
            }
        }
    });
    // Last of all, because its request waits for a second only.
    let in_session =
        json!({"language": "python", "code": waiting_program("session"), "session": "s", "timeout_s": 100});
    let client = hosts.client(0);
    let in_session = tokio::spawn(async move { client.call("run_code", in_session).await });
    wait_until("the programs run", async || {
        (gate.calls("session") == 1 && gate.calls("background") == 1).then_some(())
    })
    .await;
    let owner = hosts.daemons[1].take().expect("it runs");
    match fault {
        Fault::Killed => owner.kill().await,
        Fault::Stopped => owner.signal(Signal::SIGSTOP),
    }
    let failed = Instant::now();
    let answers =
        [in_session.await, in_background.await, reads.await].map(|answer| answer.expect("an answer"));
    let [in_session, in_background, read] = answers;
    table.row(
        format!("{fault:?}: all answers come"),
        ensure(failed.elapsed() < ANSWERED_WITHIN, failed.elapsed()),
    );
    // On a slow machine, the request has ended before its host, and the run goes on in the background.
    let is_in_background = in_session["status"] == "running";
    let words = match is_in_background {
        true => "cannot be reached",
        false => "The program may have run, in part or completely, and is not started again",
    };
    let ask = json!({"handle": in_session["handle"], "wait_s": 0});
    let in_session =
        if is_in_background { hosts.client(0).call("get_result", ask).await } else { in_session };
    table.row(
        format!("{fault:?}: a run in a session"),
        ensure(message(&in_session).contains(words), &in_session),
    );
    let lost = "of the cluster was lost before it answered";
    table.row(
        format!("{fault:?}: a run in the background"),
        ensure(message(&in_background).contains(lost), &in_background),
    );
    let text = read["error"]["message"].as_str().unwrap_or_default();
    table.row(
        format!("{fault:?}: a file"),
        ensure(text.contains(lost) || text.contains("cannot be reached"), &read),
    );
    let able = hosts.client(0).with_capabilities(json!({"elicitation": {"form": {}}}));
    let mut answering = able.calling("run_code", asking);
    answering["params"]["requestState"] = question["requestState"].clone();
    let keys = question["inputRequests"].as_object().into_iter().flatten();
    let accepted = keys.map(|(key, _)| (key.clone(), json!({"action": "accept", "content": {}})));
    answering["params"]["inputResponses"] = accepted.collect::<serde_json::Map<_, _>>().into();
    let answer = able.post(&answering).await.answer()["result"]["structuredContent"].clone();
    table.row(
        format!("{fault:?}: an answer to a question"),
        ensure(message(&answer).contains("and cannot be reached"), &answer),
    );
    gate.is_open.store(true, Ordering::SeqCst);
    table.row(format!("{fault:?}: calls"), equal((gate.calls("session"), gate.calls("background")), (1, 1)));
    if fault == Fault::Stopped {
        owner.signal(Signal::SIGKILL);
    }
}

/// How NATS is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    Ended,
    /// Its connections stay open, and it answers nothing.
    Frozen,
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_go_on_without_nats() {
    let Some(mut nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("NATS is away");
    for host in 0..HOSTS {
        hosts.run_in(host, &format!("s{host}"), &format!("x = {host}")).await;
    }
    let value = hosts.stored_value(1).await;
    let pids =
        || hosts.daemons.iter().map(|daemon| daemon.as_ref().expect("it runs").pid()).collect::<Vec<_>>();
    let before = pids();
    for how in [Away::Frozen, Away::Ended] {
        match how {
            Away::Ended => nats.stop(),
            Away::Frozen => nats.signal(Signal::SIGSTOP),
        }
        let away = Instant::now();
        loop {
            work_without_nats(&mut table, &hosts, &value, how).await;
            // In the full form for longer than a lease lasts: no host can count another one as ended.
            if !is_full() || away.elapsed() > 2 * LEASE {
                break;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        match how {
            Away::Ended => nats.start_again().await,
            Away::Frozen => nats.signal(Signal::SIGCONT),
        }
        let name = format!("after-{how:?}");
        wait_until("a session begins", async || {
            let answer = hosts.run_in(0, &name, "x = 7").await;
            answer["error"].is_null().then_some(())
        })
        .await;
        table.row(
            format!("{how:?}: a session after that"),
            equal(hosts.run_in(2, &name, "x").await["value"].clone(), json!(7)),
        );
    }
    table.row("no host was started again", equal(pids(), before));
    table.finish();
}

async fn work_without_nats(table: &mut Table, hosts: &Hosts, value: &str, how: Away) {
    for host in 0..HOSTS {
        let own = hosts.run_in(host, &format!("s{host}"), "x").await;
        table.row(format!("{how:?}: the own session of h{host}"), equal(own["value"].clone(), json!(host)));
    }
    let other = hosts.client(0).call("get_result", json!({"handle": value, "offset": 49_990})).await;
    table.row(
        format!("{how:?}: a value of another host"),
        equal(other["value"].clone(), json!("xxxxxxxxxxend")),
    );
    let begun = Instant::now();
    let refused = hosts.run_in(0, &format!("new-{how:?}"), "1").await;
    let words = "is not known: the state that the hosts of the cluster share is not available";
    let is_right = message(&refused).contains(words) && message(&refused).contains("Nothing was run");
    let is_soon = begun.elapsed() < REFUSED_WITHIN;
    table.row(format!("{how:?}: a new session"), ensure(is_right && is_soon, (begun.elapsed(), &refused)));
}

/// A host that cannot act for longer than its lease lasts makes no further call.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_wakes_up_after_its_lease_makes_no_further_call() {
    if !is_full() {
        return;
    }
    let Some(nats) = Nats::start().await else { return };
    let gate = Gate::start();
    let mut hosts = Hosts::start(&nats, &gate.config(), permit_gate).await;
    let mut table = Table::new("a host is stopped for longer than its lease lasts");
    let arguments =
        json!({"language": "python", "code": waiting_program("stopped"), "session": "s", "timeout_s": 100});
    let begun = hosts.client(1).call("run_code", arguments).await;
    wait_until("the program runs", async || (gate.calls("stopped-wait") > 0).then_some(())).await;
    let stopped = hosts.daemons[1].take().expect("it runs");
    stopped.signal(Signal::SIGSTOP);
    tokio::time::sleep(LEASE).await;
    let calls = gate.calls("stopped-wait");
    let lost = hosts.client(0).call("get_result", json!({"handle": begun["handle"]})).await;
    table.row(
        "its run, for another host",
        ensure(message(&lost).contains("no host of the cluster has"), &lost),
    );
    stopped.signal(Signal::SIGCONT);
    let ended = stopped.ended().await;
    let words = "the others count it as ended. Its runs and sessions are lost";
    table.row("it ends", ensure(ended.stderr.contains(words), &ended.stderr));
    // The call that was under way when it was stopped may arrive; the program makes no further one.
    table
        .row("calls after that", ensure(gate.calls("stopped-wait") <= calls + 1, gate.calls("stopped-wait")));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_stranger_takes_part() {
    let Some(nats) = Nats::start().await else { return };
    let hosts = Hosts::start(&nats, CONFIG, |lockhouse| lockhouse).await;
    let mut table = Table::new("strangers");
    let second = |config: &str| -> CommandOutput {
        let port = lockhouse_tests::free_port();
        let text = format!(
            "[cluster]\nname = \"h1\"\nnats = [\"{}\"]\nlisten = \"127.0.0.1:{port}\"\n{config}",
            nats.url()
        );
        let lockhouse = Lockhouse::new().config(&text);
        let mut command: Command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
        CommandOutput::run(&mut command, b"")
    };
    let taken = second("");
    let words = format!("another host at 127.0.0.1:{} has joined the cluster as h1", hosts.ports[1]);
    table.row("a second host of one name", ensure(taken.stderr.contains(&words), &taken.stderr));
    table.row("its exit status", equal(taken.status, Some(7)));
    let open = second("[http]\nauth = \"none\"\n");
    let words = "[cluster] needs clients that authenticate";
    table.row("a host without authentication", ensure(open.stderr.contains(words), &open.stderr));
    for (name, bytes) in [
        ("plain text", &b"GET / HTTP/1.1\r\n\r\n"[..]),
        ("a message of a front", b"\0\0\0\x10{\"Hello\":{}}     "),
    ] {
        let mut stream =
            tokio::net::TcpStream::connect(("127.0.0.1", hosts.ports[0])).await.expect("it listens");
        stream.write_all(bytes).await.expect("it is sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        // An alert of TLS, and nothing else.
        table.row(name, ensure(answer.len() <= 7 && !answer.starts_with(b"\0"), &answer));
    }
    let refused = handshake_without_key(hosts.ports[0]).await;
    table.row("TLS without a key", ensure(refused.is_err(), ()));
    let value = hosts.stored_value(1).await;
    let control: Value = hosts.client(0).call("get_result", json!({"handle": value, "offset": 49_990})).await;
    table.row("control: another host", equal(control["value"].clone(), json!("xxxxxxxxxxend")));
    table.finish();
}

/// Shakes hands with a host as a client without a key. Fails when the host refuses that.
async fn handshake_without_key(port: u16) -> std::io::Result<usize> {
    let client = reqwest::Client::builder().no_proxy().tls_danger_accept_invalid_certs(true).build();
    let answer = client.expect("a client").get(format!("https://127.0.0.1:{port}/")).send().await;
    answer.map(|_| 0).map_err(std::io::Error::other)
}

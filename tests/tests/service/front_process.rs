//! Tests of the processes of `lockhouse serve --http`: the engine, the front and the signer. The front and the signer are
//! sealed, and when one of them ends, another one takes its place.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockhouse_tests::{
    CommandOutput, Daemon, Lockhouse, Table, ensure, equal, front_of, is_alive, is_full, kill, signer_of,
    wait_until,
};
use serde_json::{Value, json};

use crate::http::tls::{client_that_trusts, install_certificate};

const OPEN: &str = "[http]\nauth = \"none\"\nlisten = [\"127.0.0.1:0\"]\n";
const TLS: &str = "[http]\nauth = \"none\"\nlisten = [\"127.0.0.1:0\"]\n[http.tls]\ncertificate = \"daemon.pem\"\nkey = \"daemon.key\"\n";

/// Waits until a server has another front than `before`.
async fn other_front(server: u32, before: u32) -> u32 {
    let other = || front_of(server).map(|process| process.pid).filter(|pid| *pid != before);
    wait_until("another front", async || other()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_front_is_replaced_and_ends_with_its_engine() {
    let mut table = Table::new("the processes of the HTTP service");
    let lockhouse = Lockhouse::new().config(OPEN);

    let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
    let answer = daemon.http_client(None).run_code("python", "6 * 7").await;
    table.row("a run", equal(answer["value"].clone(), json!(42)));
    let front = daemon.front_pid();
    kill(front);
    let next = other_front(daemon.pid(), front).await;
    let answer = daemon.http_client(None).run_code("python", "6 * 7").await;
    table.row("a run after its front was killed", equal(answer["value"].clone(), json!(42)));
    let log = daemon.wait_for_log("the front was lost").await;
    table.row("the log says why", ensure(log.contains("the http-front ended: signal: 9"), &log));

    kill(daemon.pid());
    daemon.ended().await;
    wait_until("the front ends when the engine was killed", async || (!is_alive(next)).then_some(())).await;

    let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
    let front = daemon.front_pid();
    let ended = daemon.terminate().await;
    table.row("SIGTERM", equal((ended.status, is_alive(front)), (Some(0), false)));

    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let ended = CommandOutput::run(&mut lockhouse.command(&["serve", "--listen", &address]), b"");
    let reason = format!("lockhouse: cannot listen at {address}: Address already in use (os error 98)");
    let last = ended.stderr.lines().last().unwrap_or_default().to_owned();
    table.row("an address that cannot be used", equal((ended.status, last), (Some(7), reason)));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_and_a_session_outlive_their_front() {
    let mut table = Table::new("what outlives a front");
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
    let calls = || lockhouse.audit().iter().filter(|record| record["event"] == "call").count();

    let (client, _) = daemon.http_client(None).initialize("2025-11-25").await;
    client.notify("notifications/initialized", json!({})).await;
    let keyed = daemon.http_client(None).with("Idempotency-Key", "0199c1f2-6c57-7e31-9d3e-000000000001");
    let code = "from mcp_tools.fixture import slow\nslow(ms=1500)['waited_ms']";
    let lost = tokio::spawn({
        let keyed = keyed.clone();
        async move {
            keyed.try_post(&keyed.calling("run_code", json!({"language": "python", "code": code}))).await
        }
    });
    wait_until("the call is made", async || (calls() > 0).then_some(())).await;
    let before = calls();
    let front = daemon.front_pid();
    kill(front);
    table.row("the request in flight has no answer", ensure(lost.await.unwrap().is_err(), "it has one"));
    other_front(daemon.pid(), front).await;
    let answer = keyed.run_code("python", code).await;
    table.row("the same request again: the value", equal(answer["value"].clone(), json!(1500)));
    table.row("the call was made once", equal(calls(), before));

    let found = client.run_code("python", "6 * 7").await;
    table.row("a session goes on", equal(found["value"].clone(), json!(42)));
    let foreign = daemon.http_client(None).in_session("00000000-0000-0000-0000-000000000000", "2025-11-25");
    let unknown = foreign.request("tools/list", json!({})).await;
    table.row("control: a session that never was", equal(unknown.status, 404));
    table.row("a session ends", equal(client.end_session().await, 202));
    kill(daemon.front_pid());
    wait_until("it is unknown to the next front", async || {
        let reply = client.try_post(&client.message("tools/list", json!({}))).await;
        reply.is_ok_and(|reply| reply.status == 404).then_some(())
    })
    .await;
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_is_lost_when_a_front_is_replaced_by_count_and_by_age() {
    let mut table = Table::new("fronts that are replaced");
    for (limit, name) in [("front_requests = 40", "by count"), ("front_seconds = 1", "by age")] {
        let lockhouse = Lockhouse::new().config(&format!("{OPEN}[http.limits]\n{limit}\n"));
        let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
        let (mut fronts, until) = (BTreeSet::new(), Instant::now() + Duration::from_secs(30));
        let is_done = Arc::new(AtomicBool::new(false));
        let clients = (0..4).map(|_| {
            let (client, is_done) = (daemon.http_client(None), is_done.clone());
            tokio::spawn(async move {
                let mut answers = 0;
                while !is_done.load(Ordering::Relaxed) {
                    let reply = client.try_post(&client.message("tools/list", json!({}))).await;
                    let reply = reply.map_err(|error| format!("{error:?}"))?;
                    let has_tools = reply.answer()["result"]["tools"].is_array();
                    ensure(has_tools, reply.body)?;
                    answers += 1;
                }
                Ok::<u32, String>(answers)
            })
        });
        let clients: Vec<_> = clients.collect();
        while fronts.len() < 4 && Instant::now() < until {
            fronts.extend(front_of(daemon.pid()).map(|process| process.pid));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        is_done.store(true, Ordering::Relaxed);
        table.row(format!("{name}: fronts"), ensure(fronts.len() >= 4, &fronts));
        for (number, client) in clients.into_iter().enumerate() {
            let answers = client.await.unwrap();
            table.row(
                format!("{name}: client {number} has an answer to each request"),
                ensure(answers.as_ref().is_ok_and(|answers| *answers > 10), &answers),
            );
        }
        let first = *fronts.iter().next().expect("a front");
        wait_until("the first front ends", async || (!is_alive(first)).then_some(())).await;
    }
    table.finish();
}

/// Kills fronts and signers while clients connect over TLS: some, or 1,000 with `LOCKHOUSE_TESTS=full`.
#[tokio::test(flavor = "multi_thread")]
async fn each_request_has_one_answer_or_none_while_fronts_and_signers_are_killed() {
    let kills = if is_full() { 1_000 } else { 12 };
    // The rate limits of one client would refuse most of the requests.
    let rates = "[clients]\nrequests = \"1000000/min\"\nruns = \"1000000/min\"\n";
    let lockhouse = Lockhouse::new().config(&format!("{TLS}{rates}"));
    install_certificate(&lockhouse, "daemon");
    let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
    let is_done = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (client, is_done) = (client_that_trusts(&daemon, "daemon"), is_done.clone());
            tokio::spawn(async move {
                let (mut answers, mut losses, mut wrong) = (0, 0, Vec::<Value>::new());
                while !is_done.load(Ordering::Relaxed) {
                    let message =
                        client.calling("run_code", json!({"language": "typescript", "code": "6 * 7"}));
                    match client.try_post(&message).await {
                        Ok(reply) if reply.answer()["result"]["structuredContent"]["value"] == 42 => {
                            answers += 1
                        }
                        Ok(reply) => wrong.push(reply.answer()),
                        Err(_) => losses += 1,
                    }
                }
                (answers, losses, wrong)
            })
        })
        .collect();
    let mut waits = Vec::new();
    for number in 0..kills {
        let victim = if number % 3 == 2 { signer_of(daemon.pid()) } else { front_of(daemon.pid()) };
        let Some(victim) = victim else { continue };
        kill(victim.pid);
        let killed = Instant::now();
        let probe = client_that_trusts(&daemon, "daemon");
        wait_until("a request succeeds", async || {
            let reply = probe.try_post(&probe.message("tools/list", json!({}))).await;
            reply.is_ok_and(|reply| reply.status == 200).then_some(())
        })
        .await;
        waits.push(killed.elapsed());
    }
    is_done.store(true, Ordering::Relaxed);
    waits.sort();
    let mut table = Table::new("fronts and signers that are killed");
    for (number, client) in clients.into_iter().enumerate() {
        let (answers, losses, wrong) = client.await.unwrap();
        table.row(format!("client {number}: answers {answers}, lost {losses}"), ensure(answers > 0, answers));
        table.row(format!("client {number}: no wrong answer"), equal(wrong, Vec::new()));
    }
    let at = |percent: usize| waits[(waits.len() - 1) * percent / 100];
    println!("until the next success: median {:?}, p99 {:?} of {}", at(50), at(99), waits.len());
    let count = |event: &str| lockhouse.records().iter().filter(|record| record["event"] == event).count();
    wait_until("each run that began has ended", async || (count("execution") == count("end")).then_some(()))
        .await;
    table.row("control: runs have begun", ensure(count("execution") > 0, count("execution")));
    table.finish();
}

/// Returns the kinds of the descriptors of a process, such as `socket` or `pipe`; of a file, its path.
fn descriptors(pid: u32) -> BTreeSet<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.map(|target| target.to_string_lossy().split(":[").next().unwrap_or_default().to_owned()).collect()
}

fn status_field(pid: u32, field: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_reports_that_front_and_signer_reach_nothing_but_their_sockets() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let lockhouse = Lockhouse::new().config(TLS);
    install_certificate(&lockhouse, "daemon");
    let daemon = Daemon::open(lockhouse.command(&["serve", "--http"])).await;
    assert!(client_that_trusts(&daemon, "daemon").run_code("python", "6 * 7").await["value"] == 42);
    let signer = signer_of(daemon.pid()).expect("a signer").pid;
    let sealed = [("front", daemon.front_pid(), "61501", "2"), ("signer", signer, "61502", "1")];
    let mut table = Table::new("what /proc says of the processes of the HTTP service");
    for (name, pid, user, threads) in sealed {
        for (field, expected) in [
            ("Uid", user),
            ("Gid", user),
            ("Groups", ""),
            ("Threads", threads),
            ("Seccomp", "2"),
            ("NoNewPrivs", "1"),
            ("CapEff", "0000000000000000"),
            ("CapPrm", "0000000000000000"),
            ("CapBnd", "0000000000000000"),
        ] {
            table.row(format!("{name}: {field}"), equal(status_field(pid, field), expected.to_owned()));
        }
        let permitted = BTreeSet::from(["socket", "pipe", "anon_inode"].map(str::to_owned));
        let others: Vec<_> = descriptors(pid).difference(&permitted).cloned().collect();
        let others: Vec<_> = others
            .into_iter()
            .filter(|other| !other.starts_with("anon_inode:") && other != "/dev/null")
            .collect();
        table.row(format!("{name}: descriptors besides sockets and pipes"), equal(others, Vec::new()));
        for kind in ["net", "ipc", "uts", "mnt", "cgroup"] {
            let link = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/{kind}")).unwrap();
            table.row(
                format!("{name}: its own namespace {kind}"),
                ensure(link(pid) != link(daemon.pid()), kind),
            );
        }
        let root = std::fs::read_dir(Path::new(&format!("/proc/{pid}/root"))).unwrap().count();
        table.row(format!("{name}: files below its root"), equal(root, 0));
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
        table.row(format!("{name}: its environment"), equal(environment.len(), 0));
    }
    let engine = daemon.pid();
    table.row("control: the engine's user", equal(status_field(engine, "Uid"), "0".to_owned()));
    let files = descriptors(engine).into_iter().filter(|target| target.starts_with('/')).count();
    table.row("control: the engine has files", ensure(files > 0, files));
    table.finish();
}

//! Tests of daemon restarts under load. The test acts as systemd: it holds the listening socket, so the kernel queues
//! connections while no daemon is running.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lockhouse_tests::{CommandOutput, Daemon, HttpClient, Lockhouse, Table, ensure, equal, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::service::{OPEN, wait_until_ready};

const CLIENTS: usize = 12;
const RESTARTS: usize = 2;

/// The numbers of requests of all AI clients, by how they ended.
#[derive(Debug, Default)]
struct RequestOutcomes {
    answers: AtomicU64,
    wrong: AtomicU64,
    told_to_come_again: AtomicU64,
    /// The number of requests whose connection was closed before any part of a response arrived.
    closed: AtomicU64,
    refused: AtomicU64,
    /// The number of requests that the daemon accepted but whose response did not arrive, so the run may have had
    /// effects.
    lost: AtomicU64,
}

impl RequestOutcomes {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// A listening socket that the test holds, as systemd does.
struct HeldSocket {
    /// Rust sets close-on-exec on a socket, so a duplicate is inherited.
    inherited: OwnedFd,
    /// `None` for a TCP socket.
    path: Option<PathBuf>,
    /// The address of a TCP socket.
    address: String,
}

impl HeldSocket {
    fn tcp() -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        Self { inherited: nix::unistd::dup(&socket).unwrap(), path: None, address }
    }

    fn unix(lockhouse: &Lockhouse) -> Self {
        let path = lockhouse.path("held.sock");
        let socket = UnixListener::bind(&path).unwrap();
        Self { inherited: nix::unistd::dup(&socket).unwrap(), path: Some(path), address: String::new() }
    }

    fn each(lockhouse: &Lockhouse) -> [(&'static str, Self); 2] {
        [("TCP", Self::tcp()), ("Unix", Self::unix(lockhouse))]
    }

    /// Connects while no daemon is running.
    fn connect(&self) -> std::io::Result<()> {
        match &self.path {
            Some(path) => UnixStream::connect(path).map(drop),
            None => TcpStream::connect(&self.address).map(drop),
        }
    }
}

async fn start(lockhouse: &Lockhouse, socket: RawFd) -> Daemon {
    Daemon::open(activated(lockhouse, socket)).await
}

/// Returns the command of the daemon with systemd's socket activation: the listening socket is descriptor 3, and
/// `LISTEN_PID` is the process id.
fn activated(lockhouse: &Lockhouse, socket: RawFd) -> std::process::Command {
    let service = lockhouse.command(&["serve", "--http"]);
    let mut command = std::process::Command::new("/bin/bash");
    command.arg("-c").arg(format!("LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&{socket}"));
    command.arg(service.get_program()).args(service.get_args()).env_clear();
    command.envs(service.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(service.get_current_dir().unwrap());
    command
}

/// Sends `run_code` requests, one after the other, until `over` is set, and counts their outcomes in `met`. `number`
/// identifies the AI client. Each program returns a unique text, so that the client detects an answer to another
/// request.
async fn send_requests(
    http_client: HttpClient,
    number: usize,
    over: Arc<AtomicBool>,
    met: Arc<RequestOutcomes>,
) {
    let mut turn = 0_u64;
    while !over.load(Ordering::Relaxed) {
        turn += 1;
        let word = format!("{number}-{turn}");
        let code = format!("import time\ntime.sleep(0.05)\n{word:?}");
        let message = http_client.calling("run_code", json!({"language": "python", "code": code}));
        match http_client.try_post(&message).await {
            Ok(reply) if reply.status == 503 => {
                RequestOutcomes::count(&met.told_to_come_again);
                assert!(reply.header("retry-after").parse::<u64>().is_ok(), "{reply:?}");
            }
            Ok(reply) if reply.answer().is_null() => RequestOutcomes::count(&met.lost),
            Ok(reply) => {
                let value = &reply.answer()["result"]["structuredContent"]["value"];
                RequestOutcomes::count(if *value == json!(word) { &met.answers } else { &met.wrong });
            }
            Err(error) if error.is_connect() => RequestOutcomes::count(&met.refused),
            Err(_) => RequestOutcomes::count(&met.closed),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_restarts_no_connection_is_refused_and_no_answer_is_lost() {
    let clients = "[clients]\nrequests = \"100000/min\"\nruns = \"100000/min\"\nrunning = 64\n";
    let mut table = Table::new("restarts under load");
    for kind in ["TCP", "Unix"] {
        let lockhouse = Lockhouse::new().config(&format!("{OPEN}{clients}"));
        let socket = if kind == "TCP" { HeldSocket::tcp() } else { HeldSocket::unix(&lockhouse) };
        restart_under_load(&mut table, (kind, socket), &lockhouse).await;
    }
    table.finish();
}

async fn restart_under_load(table: &mut Table, (kind, socket): (&str, HeldSocket), lockhouse: &Lockhouse) {
    let inherited = socket.inherited.as_raw_fd();
    let mut daemon = start(lockhouse, inherited).await;
    wait_until_ready(&daemon).await;
    let (over, met) = (Arc::new(AtomicBool::new(false)), Arc::new(RequestOutcomes::default()));
    let workers: Vec<_> = (0..CLIENTS)
        .map(|number| {
            tokio::spawn(send_requests(daemon.http_client(None), number, over.clone(), met.clone()))
        })
        .collect();
    for restart in 1..=RESTARTS {
        let before = met.answers.load(Ordering::Relaxed);
        wait_until("clients are served", async || {
            (met.answers.load(Ordering::Relaxed) >= before + 3 * CLIENTS as u64).then_some(())
        })
        .await;
        let records =
            |event: &str| lockhouse.records().iter().filter(|record| record["event"] == event).count();
        daemon.signal(Signal::SIGTERM);
        let ended = daemon.ended().await;
        table.row(format!("{kind}, restart {restart}: it ends with 0"), equal(ended.status, Some(0)));
        let (begun, over) = (records("execution"), records("end"));
        table.row(format!("{kind}, restart {restart}: every run came to its end"), equal(begun, over));
        // A client connects while no daemon is running.
        let waiting = socket.connect();
        table.row(
            format!("{kind}, restart {restart}: a connection meanwhile"),
            ensure(waiting.is_ok(), &waiting),
        );
        daemon = start(lockhouse, inherited).await;
    }
    let before = met.answers.load(Ordering::Relaxed);
    wait_until("clients are served again", async || {
        (met.answers.load(Ordering::Relaxed) >= before + 3 * CLIENTS as u64).then_some(())
    })
    .await;
    over.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    println!("{met:?}");
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    table.row(format!("{kind}: answers"), ensure(of(&met.answers) > 0, &met));
    table.row(format!("{kind}: no connection is refused"), equal(of(&met.refused), 0));
    table.row(format!("{kind}: no answer is wrong"), equal(of(&met.wrong), 0));
    table.row(format!("{kind}: no answer that began is lost"), equal(of(&met.lost), 0));
    // Each run that began has an end in the audit log, and each answer was read, so both numbers are equal.
    let ends = lockhouse.records().iter().filter(|record| record["event"] == "end").count() as u64;
    table.row(format!("{kind}: every run that ended was answered"), equal(of(&met.answers), ends));
    table.row(format!("{kind}: the last one ends too"), equal(daemon.terminate().await.status, Some(0)));
}

#[tokio::test]
async fn connections_during_draining_wait_for_the_next_daemon() {
    let lockhouse = Lockhouse::new().config(OPEN);
    for (kind, socket) in HeldSocket::each(&lockhouse) {
        let inherited = socket.inherited.as_raw_fd();
        let daemon = start(&lockhouse, inherited).await;
        wait_until_ready(&daemon).await;
        let first = daemon.http_client(None);
        let run = tokio::spawn(async move { first.run_code("python", &crate::service::sleeping(2.0)).await });
        crate::service::wait_for_running(&daemon, 1).await;
        daemon.signal(Signal::SIGTERM);
        daemon.wait_for_log("draining").await;
        let second = daemon.http_client(None);
        let waiting = tokio::spawn(async move { second.run_code("python", "6 * 7").await });
        assert_eq!(run.await.unwrap()["value"], "done", "{kind}");
        assert_eq!(daemon.ended().await.status, Some(0), "{kind}");
        assert!(!waiting.is_finished(), "{kind}: nobody is there who could answer");
        let daemon = start(&lockhouse, inherited).await;
        assert_eq!(waiting.await.unwrap()["value"], 42, "{kind}");
        assert_eq!(daemon.terminate().await.status, Some(0), "{kind}");
    }
}

/// systemd starts the service again for a connection that the process has not accepted, and gives it up after some starts.
/// So each cause of a failed start is tried: settings that cannot be read, and those that fail after the socket was adopted.
#[test]
fn a_process_that_cannot_start_answers_the_connections_that_wait() {
    let mut table = Table::new("connections of a process that cannot start");
    let rows = [
        ("settings", "[http]\nauht = \"none\"\n", "config.toml:2:1"),
        ("audit log", "[http]\nauth = \"none\"\n[audit]\ndirectory = \"/proc/audit\"\n", "/proc/audit"),
        (
            "certificate",
            "[http]\nauth = \"none\"\n[http.tls]\ncertificate = \"no.pem\"\nkey = \"no.key\"\n",
            "no.pem",
        ),
    ];
    std::thread::scope(|scope| {
        let started = rows.map(|(name, config, cause)| (name, cause, scope.spawn(|| fail_to_start(config))));
        for (name, cause, started) in started {
            let (answers, ended) = started.join().unwrap();
            for (answer, client) in answers.into_iter().zip(["waiting", "waiting too", "a later one"]) {
                let is_told = answer.as_ref().is_ok_and(|text| {
                    text.starts_with("HTTP/1.1 503 ") && text.ends_with("its log says why\n")
                });
                table.row(format!("{name}: {client}"), ensure(is_told, &answer));
            }
            let says_why = ended.status.is_some_and(|status| status != 0) && ended.stderr.contains(cause);
            table.row(format!("{name}: the log says why"), ensure(says_why, &ended));
        }
    });
    table.finish();
}

/// Starts the service with a configuration that it cannot use. Returns the answers to two connections that were there
/// before it, and to one that came later, and how the process ended.
fn fail_to_start(config: &str) -> (Vec<std::io::Result<String>>, CommandOutput) {
    let lockhouse = Lockhouse::new().config(config);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let inherited = nix::unistd::dup(&socket).unwrap();
    let ask = || {
        let mut stream = std::net::TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        stream.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        stream
    };
    let mut waiting = [ask(), ask()];
    let mut command = activated(&lockhouse, inherited.as_raw_fd());
    std::thread::scope(|scope| {
        let process = scope.spawn(move || CommandOutput::run(&mut command, b""));
        let answer = |stream: &mut std::net::TcpStream| {
            let mut text = String::new();
            stream.read_to_string(&mut text).map(|_| text)
        };
        let mut answers: Vec<_> = waiting.iter_mut().map(answer).collect();
        answers.push(answer(&mut ask()));
        (answers, process.join().unwrap())
    })
}

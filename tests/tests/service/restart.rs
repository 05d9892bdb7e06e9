//! A restart under load, with systemd played by the test: it holds the socket, and the kernel keeps whoever comes meanwhile.

use std::net::TcpListener;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lockhouse_tests::{Door, Lockhouse, Table, Visitor, ensure, equal, wait_until};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::{OPEN, is_ready};

const CLIENTS: usize = 12;
const RESTARTS: usize = 2;

/// What clients have met.
#[derive(Debug, Default)]
struct Met {
    answers: AtomicU64,
    wrong: AtomicU64,
    told_to_come_again: AtomicU64,
    /// The connection was closed before anything of an answer had come.
    closed: AtomicU64,
    refused: AtomicU64,
    /// What a run had taken effect in, and nobody was told.
    lost: AtomicU64,
}

impl Met {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Starts the service as systemd does: the socket is descriptor 3, and the process is told its own number.
async fn start(lockhouse: &Lockhouse, socket: RawFd) -> Door {
    let service = lockhouse.command(&["serve", "--http"]);
    let mut command = std::process::Command::new("/bin/sh");
    command.arg("-c").arg(format!("LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" \"$@\" 3<&{socket}"));
    command.arg(service.get_program()).args(service.get_args()).env_clear();
    command.envs(service.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(service.get_current_dir().unwrap());
    Door::open(command).await
}

/// Works until it is told to stop: each run says a number of its own, and its answer must say it again.
async fn work(visitor: Visitor, number: usize, over: Arc<AtomicBool>, met: Arc<Met>) {
    let mut turn = 0_u64;
    while !over.load(Ordering::Relaxed) {
        turn += 1;
        let word = format!("{number}-{turn}");
        let code = format!("import time\ntime.sleep(0.05)\n{word:?}");
        let message = visitor.calling("run_code", json!({"language": "python", "code": code}));
        match visitor.try_post(&message).await {
            Ok(reply) if reply.status == 503 => {
                Met::count(&met.told_to_come_again);
                assert!(reply.header("retry-after").parse::<u64>().is_ok(), "{reply:?}");
            }
            Ok(reply) if reply.answer().is_null() => Met::count(&met.lost),
            Ok(reply) => {
                let value = &reply.answer()["result"]["structuredContent"]["value"];
                Met::count(if *value == json!(word) { &met.answers } else { &met.wrong });
            }
            Err(error) if error.is_connect() => Met::count(&met.refused),
            Err(_) => Met::count(&met.closed),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_refused_and_what_began_is_answered() {
    let clients = "[clients]\nrequests = \"100000/min\"\nruns = \"100000/min\"\nrunning = 64\n";
    let lockhouse = Lockhouse::new().config(&format!("{OPEN}{clients}"));
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Rust opens it so that no program that is started has it.
    let inherited = nix::unistd::dup(&socket).unwrap();
    let mut door = start(&lockhouse, inherited.as_raw_fd()).await;
    assert_eq!(door.address(), address.to_string());
    is_ready(&door).await;
    let (over, met) = (Arc::new(AtomicBool::new(false)), Arc::new(Met::default()));
    let workers: Vec<_> = (0..CLIENTS)
        .map(|number| tokio::spawn(work(door.visitor(None), number, over.clone(), met.clone())))
        .collect();
    let mut table = Table::new("restarts under load");
    for restart in 1..=RESTARTS {
        let before = met.answers.load(Ordering::Relaxed);
        wait_until("clients are served", async || {
            (met.answers.load(Ordering::Relaxed) >= before + 3 * CLIENTS as u64).then_some(())
        })
        .await;
        let records =
            |event: &str| lockhouse.records().iter().filter(|record| record["event"] == event).count();
        door.signal(Signal::SIGTERM);
        let ended = door.ended().await;
        table.row(format!("restart {restart}: it ends with 0"), equal(ended.status, Some(0)));
        let (begun, over) = (records("execution"), records("end"));
        table.row(format!("restart {restart}: every run came to its end"), equal(begun, over));
        // Somebody who comes while nobody is there.
        let waiting = tokio::net::TcpStream::connect(address).await;
        table.row(format!("restart {restart}: a connection meanwhile"), ensure(waiting.is_ok(), &waiting));
        door = start(&lockhouse, inherited.as_raw_fd()).await;
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
    table.row("answers", ensure(of(&met.answers) > 0, &met));
    table.row("no connection is refused", equal(of(&met.refused), 0));
    table.row("no answer is wrong", equal(of(&met.wrong), 0));
    table.row("no answer that began is lost", equal(of(&met.lost), 0));
    // Each run that began has an end in the log, and each answer was read: as many as there are.
    let ends = lockhouse.records().iter().filter(|record| record["event"] == "end").count() as u64;
    table.row("every run that ended was answered", equal(of(&met.answers), ends));
    table.row("the last one ends too", equal(door.terminate().await.status, Some(0)));
    table.finish();
}

#[tokio::test]
async fn whoever_comes_while_it_drains_waits_for_the_next_one() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let inherited = nix::unistd::dup(&socket).unwrap();
    let door = start(&lockhouse, inherited.as_raw_fd()).await;
    is_ready(&door).await;
    let first = door.visitor(None);
    let run = tokio::spawn(async move { first.run_code("python", &crate::sleeping(2.0)).await });
    crate::running(&door, 1).await;
    door.signal(Signal::SIGTERM);
    door.says("draining").await;
    let second = door.visitor(None);
    let waiting = tokio::spawn(async move { second.run_code("python", "6 * 7").await });
    assert_eq!(run.await.unwrap()["value"], "done");
    assert_eq!(door.ended().await.status, Some(0));
    assert!(!waiting.is_finished(), "nobody is there who could answer");
    let door = start(&lockhouse, inherited.as_raw_fd()).await;
    assert_eq!(waiting.await.unwrap()["value"], 42);
    assert_eq!(door.terminate().await.status, Some(0));
}

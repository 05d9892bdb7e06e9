//! What systemd is told.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockhouse_tests::{Door, Lockhouse, Table, ensure, equal, wait_until};
use nix::sys::signal::Signal;

use crate::{OPEN, is_ready, running, sleeping};

/// What systemd listens at.
struct Manager {
    path: PathBuf,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Manager {
    fn of(lockhouse: &Lockhouse) -> Self {
        let path = lockhouse.path("notify.sock");
        let socket = UnixDatagram::bind(&path).unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let so_far = heard.clone();
        std::thread::spawn(move || {
            let mut message = [0; 4096];
            while let Ok(count) = socket.recv(&mut message) {
                so_far.lock().unwrap().push(String::from_utf8_lossy(&message[..count]).into_owned());
            }
        });
        Self { path, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// The first message from `from` on that has these words, and its place.
    async fn hears(&self, words: &str, from: usize) -> (usize, String) {
        wait_until(&format!("it says {words}"), async || {
            self.heard().into_iter().enumerate().skip(from).find(|(_, said)| said.contains(words))
        })
        .await
    }
}

#[tokio::test]
async fn systemd_is_told_of_every_step() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let manager = Manager::of(&lockhouse);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager.path).env("WATCHDOG_USEC", "200000");
    let door = Door::open(command).await;
    let mut table = Table::new("what systemd is told");
    let (ready, told) = manager.hears("READY=1", 0).await;
    table.row("nothing before it is ready", equal(ready, 0));
    table.row("how it is, in a line", ensure(told.contains("STATUS=0 running, 0 waiting, "), &told));
    manager.hears("1 of 1 servers connected", 0).await;
    let (first, _) = manager.hears("WATCHDOG=1", 0).await;
    let (second, _) = manager.hears("WATCHDOG=1", first + 1).await;
    table.row("it lives", ensure(second > first, manager.heard()));
    let visitor = door.visitor(None);
    let run = tokio::spawn(async move { visitor.run_code("python", &sleeping(2.0)).await });
    running(&door, 1).await;
    let (_, told) = manager.hears("STATUS=1 running", 0).await;
    table.row("what runs", ensure(told.contains("1 of 1 servers connected"), &told));

    let from = manager.heard().len();
    door.reload().await;
    let (reloading, told) = manager.hears("RELOADING=1", from).await;
    table.row("the reload has its time", ensure(told.contains("MONOTONIC_USEC="), &told));
    let (again, _) = manager.hears("READY=1", reloading).await;
    table.row("and its end", ensure(again > reloading, manager.heard()));

    door.signal(Signal::SIGTERM);
    let (stopping, told) = manager.hears("STOPPING=1", again).await;
    table.row("that it drains", ensure(told.contains("STATUS=draining: 1 running"), &told));
    let (_, told) = manager.hears("WATCHDOG=1", stopping).await;
    table.row("and lives meanwhile", ensure(!told.is_empty(), &told));
    table.row("the run has its answer", equal(&run.await.unwrap()["value"], &"done".into()));
    table.row("exit status", equal(door.ended().await.status, Some(0)));
    table.finish();
}

#[tokio::test]
async fn a_service_whose_audit_log_cannot_be_written_lets_the_watchdog_bite() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let manager = Manager::of(&lockhouse);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager.path).env("WATCHDOG_USEC", "200000");
    let door = Door::open(command).await;
    manager.hears("WATCHDOG=1", 0).await;
    let (directory, aside) = (lockhouse.audit_directory(), lockhouse.path("aside"));
    std::fs::rename(&directory, &aside).unwrap();
    std::fs::write(&directory, "").unwrap();
    let (place, _) = manager.hears("STATUS=the audit log cannot be written", 0).await;
    // Five times the interval.
    let silent =
        tokio::time::timeout(Duration::from_millis(500), manager.hears("WATCHDOG=1", place + 1)).await;
    assert!(silent.is_err(), "{:?}", manager.heard());
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&aside, &directory).unwrap();
    manager.hears("WATCHDOG=1", place + 1).await;
    drop(door);
}

#[tokio::test]
async fn a_host_that_gives_no_engine_is_never_ready() {
    let config = format!(
        "{OPEN}[python]\ninterpreter = \"/nowhere/python3\"\n[javascript]\nworker = \"/nowhere/worker\"\n"
    );
    let lockhouse = Lockhouse::new().config(&config);
    let manager = Manager::of(&lockhouse);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager.path);
    let door = Door::open(command).await;
    let (_, told) = manager.hears("STATUS=", 0).await;
    assert!(told.contains("no engine is available") && !told.contains("READY"), "{told}");
    let (status, words) = crate::get(&door, "/ready").await;
    assert!(status == 503 && words.contains("no engine"), "{words}");
    drop(door);
}

#[tokio::test]
async fn a_manager_that_does_not_read_holds_nobody_up() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let path = lockhouse.path("notify.sock");
    let deaf = UnixDatagram::bind(&path).unwrap();
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "2000");
    let door = Door::open(command).await;
    is_ready(&door).await;
    // Long enough for a thousand signs of life, of which the socket takes a few.
    assert_eq!(door.visitor(None).run_code("python", &sleeping(1.0)).await["value"], "done");
    assert_eq!(door.visitor(None).run_code("python", "6 * 7").await["value"], 42);
    assert_eq!(door.terminate().await.status, Some(0));
    drop(deaf);
}

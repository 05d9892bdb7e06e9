//! Tests of the daemon's notifications to systemd (`sd_notify`) and of the systemd watchdog.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use lockhouse_tests::{Daemon, Lockhouse, Table, ensure, equal, wait_until};
use nix::sys::signal::Signal;

use crate::service::{OPEN, sleeping, wait_for_running, wait_until_ready};

/// A Unix datagram socket that receives `sd_notify` messages as systemd does.
struct SystemdStub {
    path: PathBuf,
    heard: Arc<Mutex<Vec<String>>>,
}

impl SystemdStub {
    fn bind(lockhouse: &Lockhouse) -> Self {
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

    fn messages(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Waits for the first notification, from index `from` on, that contains `words`. Returns its index and its text.
    async fn wait_for_message(&self, words: &str, from: usize) -> (usize, String) {
        wait_until(&format!("it says {words}"), async || {
            self.messages().into_iter().enumerate().skip(from).find(|(_, said)| said.contains(words))
        })
        .await
    }
}

#[tokio::test]
async fn systemd_is_notified_of_every_state_change() {
    let lockhouse = Lockhouse::with_fixture().config(OPEN);
    let manager = SystemdStub::bind(&lockhouse);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager.path).env("WATCHDOG_USEC", "200000");
    let daemon = Daemon::open(command).await;
    let mut table = Table::new("notifications to systemd");
    let (ready, told) = manager.wait_for_message("READY=1", 0).await;
    table.row("nothing before it is ready", equal(ready, 0));
    table.row("how it is, in a line", ensure(told.contains("STATUS=0 running, 0 waiting, "), &told));
    manager.wait_for_message("1 of 1 servers connected", 0).await;
    let (first, _) = manager.wait_for_message("WATCHDOG=1", 0).await;
    let (second, _) = manager.wait_for_message("WATCHDOG=1", first + 1).await;
    table.row("it lives", ensure(second > first, manager.messages()));
    let http_client = daemon.http_client(None);
    let run = tokio::spawn(async move { http_client.run_code("python", &sleeping(2.0)).await });
    wait_for_running(&daemon, 1).await;
    let (_, told) = manager.wait_for_message("STATUS=1 running", 0).await;
    table.row("what runs", ensure(told.contains("1 of 1 servers connected"), &told));

    let from = manager.messages().len();
    daemon.reload().await;
    let (reloading, told) = manager.wait_for_message("RELOADING=1", from).await;
    table.row("the reload has its time", ensure(told.contains("MONOTONIC_USEC="), &told));
    let (again, _) = manager.wait_for_message("READY=1", reloading).await;
    table.row("and its end", ensure(again > reloading, manager.messages()));

    daemon.signal(Signal::SIGTERM);
    let (stopping, told) = manager.wait_for_message("STOPPING=1", again).await;
    table.row("that it drains", ensure(told.contains("STATUS=draining: 1 running"), &told));
    let (_, told) = manager.wait_for_message("WATCHDOG=1", stopping).await;
    table.row("and lives meanwhile", ensure(!told.is_empty(), &told));
    table.row("the run has its answer", equal(&run.await.unwrap()["value"], &"done".into()));
    table.row("exit status", equal(daemon.ended().await.status, Some(0)));
    table.finish();
}

/// A restart would not make room on a full disk.
#[tokio::test]
async fn with_an_unwritable_audit_log_the_process_lives_and_is_not_ready() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let manager = SystemdStub::bind(&lockhouse);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager.path).env("WATCHDOG_USEC", "200000");
    let daemon = Daemon::open(command).await;
    manager.wait_for_message("WATCHDOG=1", 0).await;
    let (directory, aside) = (lockhouse.audit_directory(), lockhouse.path("aside"));
    std::fs::rename(&directory, &aside).unwrap();
    std::fs::write(&directory, "").unwrap();
    let (place, _) = manager.wait_for_message("STATUS=the audit log cannot be written", 0).await;
    let (first, _) = manager.wait_for_message("WATCHDOG=1", place + 1).await;
    let (second, _) = manager.wait_for_message("WATCHDOG=1", first + 1).await;
    let (status, words) = crate::service::get(&daemon, "/ready").await;
    assert!(status == 503 && words.contains("the audit log cannot be written"), "{status} {words}");
    std::fs::remove_file(&directory).unwrap();
    std::fs::rename(&aside, &directory).unwrap();
    manager.wait_for_message("STATUS=0 running", second + 1).await;
    wait_until_ready(&daemon).await;
    drop(daemon);
}

#[tokio::test]
async fn without_a_language_engine_the_service_is_never_ready() {
    let config = format!(
        "{OPEN}[python]\ninterpreter = \"/nowhere/python3\"\n[javascript]\nworker = \"/nowhere/worker\"\n"
    );
    let lockhouse = Lockhouse::new().config(&config);
    let manager = SystemdStub::bind(&lockhouse);
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &manager.path);
    let daemon = Daemon::open(command).await;
    let (_, told) = manager.wait_for_message("STATUS=", 0).await;
    assert!(told.contains("no engine is available") && !told.contains("READY"), "{told}");
    let (status, words) = crate::service::get(&daemon, "/ready").await;
    assert!(status == 503 && words.contains("no engine"), "{words}");
    drop(daemon);
}

#[tokio::test]
async fn a_service_manager_that_does_not_read_blocks_nothing() {
    let lockhouse = Lockhouse::new().config(OPEN);
    let path = lockhouse.path("notify.sock");
    let deaf = UnixDatagram::bind(&path).unwrap();
    let mut command = lockhouse.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "2000");
    let daemon = Daemon::open(command).await;
    wait_until_ready(&daemon).await;
    // Long enough for a thousand watchdog messages, of which the socket buffers a few.
    assert_eq!(daemon.http_client(None).run_code("python", &sleeping(1.0)).await["value"], "done");
    assert_eq!(daemon.http_client(None).run_code("python", "6 * 7").await["value"], 42);
    assert_eq!(daemon.terminate().await.status, Some(0));
    drop(deaf);
}

//! Tests and measures that a revocation and the kill switch reach all clients of several users.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use lockhouse_tests::{Lockhouse, Session, Table, ensure, structured, wait_until};
use nix::unistd::geteuid;
use serde_json::Value;

use super::{can_mount, error_of, lockhouse, managed, require, server};

/// The first of the accounts of the users. They have no names and no other processes.
const FIRST_ACCOUNT: u32 = 61_550;

/// The clients of each user share an engine.
const SHARED: &str = "[sharing]\nengine = \"shared\"\ndirectory = \"/\"\n[pool]\nrunning = 16\n";
/// A program that calls the server until it is refused. It returns the time of that.
const CALLS_UNTIL_REFUSED: &str = "import time
from fixture import add
from mcp_tools import ToolError
refused = None
while refused is None:
    try:
        add(a=1, b=2)
        time.sleep(0.1)
    except ToolError as error:
        refused = [time.time(), error.code]
refused";
const CALLS_FOR_EVER: &str =
    "import time\nfrom fixture import add\nwhile True:\n    add(a=1, b=2)\n    time.sleep(0.1)";

/// Returns the executions that have called the server.
fn programs_that_call(user: &Lockhouse) -> BTreeSet<String> {
    user.audit().iter().map(|record| record["execution"].to_string()).collect()
}

/// Returns the accounts of the users: one for each, if this host lets the tests have other accounts and an `/etc`.
fn accounts(users: usize) -> Option<Vec<u32>> {
    let of_user = |number: usize| FIRST_ACCOUNT + u32::try_from(number).unwrap();
    (geteuid().is_root() && can_mount()).then(|| (0..users).map(of_user).collect())
}

/// Gives a directory, and all in it, to an account.
fn give_all(path: &Path, account: u32) {
    chown(path, Some(account), Some(account)).unwrap();
    if path.is_dir() {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
        std::fs::read_dir(path).unwrap().for_each(|entry| give_all(&entry.unwrap().path(), account));
    }
}

/// Returns the command of an AI client. With an account, it runs as that, and the administrator's `/etc` is that of the host;
/// else the environment names the requirements.
fn command(administrator: &Lockhouse, user: &Lockhouse, account: Option<u32>) -> Command {
    let mut serve = user.command(&["serve"]);
    let Some(account) = account.map(|account| account.to_string()) else {
        serve.env("LOCKHOUSE_REQUIREMENTS", administrator.path("etc/lockhouse/requirements.toml"));
        return serve;
    };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &account, "--regid", &account, "--clear-groups"]);
    command.arg(serve.get_program()).args(serve.get_args());
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut command = managed(administrator, &command);
    command.current_dir("/");
    command
}

/// Connects clients of several users, applies a revocation and then the kill switch while each client runs a program, and
/// prints how long it took until the last one was refused.
async fn measure(users: usize, clients: usize) {
    let users: Vec<Lockhouse> =
        (0..users).map(|_| lockhouse().config(&format!("{}{SHARED}", server("fixture")))).collect();
    let administrator = &Lockhouse::new();
    require(administrator, "");
    let accounts = accounts(users.len());
    println!("accounts of the users: {accounts:?}");
    let mut sessions = Vec::new();
    for (number, user) in users.iter().enumerate() {
        let account = accounts.as_ref().map(|accounts| accounts[number]);
        if let Some(account) = account {
            give_all(&user.path(""), account);
        }
        for _ in 0..clients {
            let command = command(administrator, user, account);
            sessions.push(Session::connect(command, Session::latest()).await);
        }
    }
    // The programs of each user that have called the server.
    let programs = || users.iter().map(|user| programs_that_call(user).len()).collect::<Vec<_>>();
    let wait_for_calls = async |before: &[usize]| {
        let all_call = || before.iter().zip(programs()).all(|(before, now)| now >= before + clients);
        wait_until("all programs call", async || all_call().then_some(())).await;
    };
    let mut table = Table::new("all clients are refused");
    let before = programs();
    let running: Vec<_> =
        sessions.iter().map(|session| session.start_code("python", CALLS_UNTIL_REFUSED)).collect();
    wait_for_calls(&before).await;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    require(administrator, "[[denied]]\nname = \"fixture\"\n");
    let answers: Vec<Value> = join_all(running).await.into_iter().map(|it| structured(it.unwrap())).collect();
    let refused = |answer: &Value| Duration::from_secs_f64(answer["value"][0].as_f64().unwrap_or_default());
    let last = answers.iter().map(refused).max().unwrap_or_default().saturating_sub(since);
    println!("{} clients: the last one is refused {last:?} after a revocation", sessions.len());
    let is_revoked = |answer: &Value| answer["value"][1] == "denied";
    table.row("a revocation", ensure(answers.iter().all(is_revoked), format!("{answers:?}")));
    require(administrator, "");
    let works = async |session: &Session| {
        session.run_code("python", "from fixture import add\nadd(a=1, b=2)").await["status"] == "ok"
    };
    for session in &sessions {
        wait_until("it works again", async || works(session).await.then_some(())).await;
    }
    let before = programs();
    let running = sessions.iter().map(|session| {
        let running = session.start_code("python", CALLS_FOR_EVER);
        tokio::spawn(async move { (structured(running.await.unwrap()), Instant::now()) })
    });
    let running: Vec<_> = running.collect();
    wait_for_calls(&before).await;
    let since = Instant::now();
    require(administrator, "stop = \"incident 7\"\n");
    let answers: Vec<_> = join_all(running).await.into_iter().map(Result::unwrap).collect();
    let last = answers.iter().map(|(_, ended)| ended.duration_since(since)).max().unwrap_or_default();
    println!("{} clients: the last one has its answer {last:?} after the kill switch", sessions.len());
    let is_stopped =
        |(answer, _): &(Value, Instant)| error_of(answer).ends_with("has stopped Lockhouse: incident 7");
    table.row("the kill switch", ensure(answers.iter().all(is_stopped), format!("{answers:?}")));
    table.finish();
    for session in sessions {
        session.close().await;
    }
}

/// The quick form of the measurement.
#[tokio::test]
async fn all_clients_are_refused() {
    Box::pin(measure(2, 3)).await;
}

#[tokio::test]
#[ignore = "a measurement: it starts 50 clients; run it with --run-ignored only and --no-capture"]
async fn fifty_clients_of_ten_users() {
    Box::pin(measure(10, 5)).await;
}

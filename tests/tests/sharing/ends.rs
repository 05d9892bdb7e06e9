//! Tests of the end of a shared engine while clients use it: by a crash, on request, and after an update of the program.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use lockhouse_tests::{Lockhouse, Session, Table, ensure, equal, target_directory, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{add, lockhouse, pid_of, the_engine, wait_for_engines};

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid as i32), signal).unwrap();
}

async fn wait_for_running(lockhouse: &Lockhouse) -> u32 {
    wait_until("the program runs", async || {
        let engine = the_engine(lockhouse);
        (engine["running"] == 1).then(|| pid_of(&engine))
    })
    .await
}

fn error_of(answer: &Value) -> String {
    format!("{} {}", answer["error"]["type"], answer["error"]["message"])
}

/// Tests what a program in flight and the requests after it get when the engine ends without warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_in_flight_gets_an_error_that_says_what_to_do() {
    let mut table = Table::new("the engine ends while a program runs");
    for signal in [Signal::SIGKILL, Signal::SIGABRT] {
        let lockhouse = lockhouse();
        let client = lockhouse.serve().await;
        assert_eq!(client.run_in("s", "python", "x = 1\nx").await["value"], 1);
        let handle = client.run_code("python", "'x' * 100_000").await["truncated"].to_string();
        let handle = handle.split('"').find(|part| part.len() == 32).unwrap().to_owned();
        let running = client.start_code("python", "import time\ntime.sleep(25)");
        let pid = wait_for_running(&lockhouse).await;
        let begun = Instant::now();
        send(pid, signal);
        let lost = lockhouse_tests::structured(running.await.unwrap());
        let words = error_of(&lost);
        let says = words.contains("ServiceUnavailable") && words.contains("repeat it only if that is safe");
        table.row(format!("{signal}: the program"), ensure(says && words.contains("engine.log"), words));
        table.row(format!("{signal}: the next call"), equal(add(&client).await, json!(42)));
        println!("{signal}: the next call ended {:?} after the signal", begun.elapsed());
        let session = client.run_in("s", "python", "globals().get('x', 'new')").await;
        table.row(format!("{signal}: a session is new"), equal(session["value"].clone(), json!("new")));
        let gone = lockhouse_tests::structured(client.call("get_result", json!({"handle": handle})).await);
        let explains = error_of(&gone).contains("results of an earlier process are gone");
        table.row(format!("{signal}: a handle is gone"), ensure(explains, gone));
        let tools = client.tools().await;
        table.row(format!("{signal}: tools are listed"), ensure(tools.len() == 3, tools.len()));
    }
    table.finish();
}

/// Tests an engine that is asked to end: what runs gets its answer, and what comes meanwhile waits for the next engine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_is_asked_to_end_answers_what_runs() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    let running = client.start_code("python", "import time\ntime.sleep(1.5)\n'done'");
    let pid = wait_for_running(&lockhouse).await;
    send(pid, Signal::SIGTERM);
    let next = add(&client).await;
    let mut table = Table::new("the engine drains");
    let answer = lockhouse_tests::structured(running.await.unwrap());
    table.row("the running program", equal(answer["value"].clone(), json!("done")));
    table.row("the request during the drain", equal(next, json!(42)));
    let engine = wait_for_engines(&lockhouse, 1).await.remove(0);
    table.row("another engine", ensure(pid_of(&engine) != pid, engine));
    table.finish();
}

/// Puts a copy of the program under test and of what it needs into a directory, and returns the path of the program.
fn install(lockhouse: &Lockhouse, directory: &Path) -> std::path::PathBuf {
    std::fs::create_dir_all(directory).unwrap();
    for name in ["lockhouse-worker", "liblockhouse_python.so"] {
        let target = directory.join(name);
        if !target.exists() {
            std::fs::hard_link(target_directory().join(name), &target)
                .or_else(|_| std::fs::copy(target_directory().join(name), &target).map(drop))
                .unwrap();
        }
    }
    let (new, program) = (directory.join("new"), directory.join("lockhouse"));
    std::fs::copy(lockhouse.program(), &new).unwrap();
    std::fs::rename(new, &program).unwrap();
    program
}

fn installed(lockhouse: &Lockhouse, program: &Path) -> Command {
    let command = lockhouse.command(&["serve"]);
    let mut installed = Command::new(program);
    installed.args(command.get_args()).env_clear().current_dir(command.get_current_dir().unwrap());
    installed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    installed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_an_update_new_clients_get_the_new_program_and_old_ones_continue() {
    let lockhouse = lockhouse();
    let bin = lockhouse.path("bin");
    let program = install(&lockhouse, &bin);
    let old = Session::connect(installed(&lockhouse, &program), Session::latest()).await;
    assert_eq!(add(&old).await, json!(42));
    let first = pid_of(&the_engine(&lockhouse));
    install(&lockhouse, &bin);
    let new = Session::connect(installed(&lockhouse, &program), Session::latest()).await;
    let mut table = Table::new("an update of the program");
    table.row("the new client", equal(add(&new).await, json!(42)));
    table.row("the old client", equal(add(&old).await, json!(42)));
    table.row("each has its engine", equal(wait_for_engines(&lockhouse, 2).await.len(), 2));
    send(first, Signal::SIGKILL);
    table.row("the old client after the end of its engine", equal(add(&old).await, json!(42)));
    let engine = wait_for_engines(&lockhouse, 1).await.remove(0);
    table.row("both are at the new engine", equal(engine["clients"].as_array().map(Vec::len), Some(2)));
    table.finish();
}

/// Tests that a client whose engine cannot be started again says so, and continues when it can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_an_engine_says_why_and_continues_later() {
    let lockhouse = lockhouse();
    let client = lockhouse.serve().await;
    assert_eq!(add(&client).await, json!(42));
    lockhouse.file("config/lockhouse/policy.toml", "version = 7\n");
    send(pid_of(&the_engine(&lockhouse)), Signal::SIGKILL);
    let refused = client.run_code("python", "1").await;
    let words = error_of(&refused);
    assert!(
        words.contains("the configuration or policy is not valid") && words.contains("Nothing was run"),
        "{words}"
    );
    lockhouse.file("config/lockhouse/policy.toml", "version = 1\n[servers.fixture]\nallow = [\"*\"]\n");
    assert_eq!(add(&client).await, json!(42));
}

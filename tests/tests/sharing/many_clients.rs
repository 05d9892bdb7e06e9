//! Tests of several AI clients at one engine: they share its servers and workers, and nothing else.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use lockhouse_tests::{Lockhouse, Session, Table, descendants, ensure, equal, is_alive, wait_until};
use serde_json::json;

use super::{add, engines, files, lockhouse, pid_of, the_engine, upstream_servers, wait_for_engines};

const CLIENTS: usize = 5;

async fn connect_all(lockhouse: &Lockhouse) -> Vec<Session> {
    join_all((0..CLIENTS).map(|_| lockhouse.serve())).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_clients_that_start_at_once_share_one_set_of_servers() {
    let lockhouse = lockhouse();
    let clients = connect_all(&lockhouse).await;
    let mut table = Table::new("five clients of one engine");
    let answers = join_all(clients.iter().map(add)).await;
    table.row("each gets its answer", equal(answers, vec![json!(42); CLIENTS]));
    let engine = the_engine(&lockhouse);
    let servers = upstream_servers(pid_of(&engine));
    table.row("one process of the server", ensure(servers.len() == 1, &servers));
    for client in &clients {
        let below = descendants(client.pid());
        table.row("the client's process has no children", ensure(below.is_empty(), &below));
    }
    let listed: Vec<u64> =
        engine["clients"].as_array().unwrap().iter().map(|client| client["pid"].as_u64().unwrap()).collect();
    let mut expected: Vec<u64> = clients.iter().map(|client| client.pid().into()).collect();
    let mut shown = listed.clone();
    expected.sort_unstable();
    shown.sort_unstable();
    table.row("the status lists the clients", equal(shown, expected));
    let names =
        engine["clients"].as_array().unwrap().iter().all(|client| client["name"] == "lockhouse-tests");
    table.row("with their names", ensure(names, &engine["clients"]));
    let text = lockhouse.run(&["status"]).stdout;
    table.row("also as text", ensure(text.contains("lockhouse-tests") && text.contains("client"), text));
    table.finish();
    let (pid, ended) = (pid_of(&engine), join_all(clients.into_iter().map(Session::close)).await);
    assert!(ended.iter().all(|ended| ended.status == Some(0)), "{ended:?}");
    wait_until("the engine ends without clients", async || (!is_alive(pid)).then_some(())).await;
    assert_eq!(files(&lockhouse), Vec::<std::path::PathBuf>::new());
    assert!(engines(&lockhouse).is_empty());
}

/// Tests what each of five clients notices when the engine is killed: its next call succeeds, with one new engine for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_each_client_continues_with_one_new_engine() {
    let lockhouse = lockhouse();
    let clients = connect_all(&lockhouse).await;
    join_all(clients.iter().map(add)).await;
    let killed = pid_of(&the_engine(&lockhouse));
    let begun = Instant::now();
    lockhouse_tests::kill(killed);
    let answers = join_all(clients.iter().map(async |client| (add(client).await, begun.elapsed()))).await;
    println!("after the kill: {answers:?}");
    let mut table = Table::new("calls after the engine was killed");
    for (answer, took) in answers {
        table.row(format!("after {took:?}"), equal(answer, json!(42)));
        table.row("in time", ensure(took < Duration::from_secs(10), took));
    }
    let engine = wait_for_engines(&lockhouse, 1).await.remove(0);
    table.row("another engine", ensure(pid_of(&engine) != killed, &engine));
    table.row("one set of servers", equal(upstream_servers(pid_of(&engine)).len(), 1));
    table.row("all clients are at it", equal(engine["clients"].as_array().map(Vec::len), Some(CLIENTS)));
    table.finish();
}

#[tokio::test]
async fn the_session_of_a_client_ends_with_its_connection() {
    let lockhouse = lockhouse();
    let (leaving, staying) = (lockhouse.serve().await, lockhouse.serve().await);
    for client in [&leaving, &staying] {
        assert_eq!(client.run_in("s", "python", "x = 1\nx").await["value"], 1);
    }
    let sessions = || the_engine(&lockhouse)["sessions"].as_u64();
    assert_eq!(sessions(), Some(2));
    leaving.close().await;
    wait_until("its session ends", async || (sessions() == Some(1)).then_some(())).await;
    assert_eq!(staying.run_in("s", "python", "x").await["value"], 1);
}

//! The table of attempts of a user on a managed host: each one fails, and succeeds on a host without requirements.

mod approvals;
mod audit;
mod commands;
mod every_server;
mod files;
mod http;
mod languages;
mod limits;
mod page;
mod policies;
mod reloads;
mod servers;
mod sharing;
mod stop;
mod storm;
mod suspended;

use std::collections::BTreeMap;

use lockhouse_tests::{Lockhouse, Table, ensure, fixture_server};

use super::attempts::{Attempt, Since, try_both};
use super::can_mount;

/// The kind of an attempt, what is attempted, the requirements, and the attempt. In the requirements, `ROOT` is the directory
/// of the test, `PROGRAM` the program of the fixture server, and `WORKER` that of the JavaScript engine.
type Row = (&'static str, &'static str, &'static str, Attempt);

/// Minimum number of attempts.
const ATTEMPTS_MIN: usize = 60;

/// Tries all attempts of a table. The last lines of the table have their number by kind. Returns their number.
async fn try_all(title: &str, since: Since, rows: Vec<Row>) -> usize {
    let mut table = Table::new(title);
    let mut kinds = BTreeMap::<&str, usize>::new();
    let worker = Lockhouse::new().program().with_file_name("lockhouse-worker").display().to_string();
    let program = fixture_server().display().to_string();
    for part in rows.chunks(6) {
        let tried = part.iter().map(|(kind, what, requirements, attempt)| {
            let requirements = requirements.replace("PROGRAM", &program).replace("WORKER", &worker);
            async move {
                let outcome = Box::pin(try_both(&requirements, since, *attempt)).await;
                (*kind, format!("{kind}: {what}"), outcome)
            }
        });
        for (kind, what, [required, free]) in futures_util::future::join_all(tried).await {
            *kinds.entry(kind).or_default() += 1;
            table.row(format!("{what}: it fails"), ensure(!required.0, required.1));
            table.row(format!("{what}: control"), ensure(free.0, free.1));
        }
    }
    for (kind, count) in kinds {
        table.row(format!("attempts of the kind {kind}: {count}"), Ok(()));
    }
    table.row(format!("attempts of all kinds: {}", rows.len()), Ok(()));
    table.finish();
    rows.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_attempt_of_a_user_lifts_requirements() {
    if !can_mount() {
        return;
    }
    let rows = [
        servers::rows(),
        policies::policies(),
        policies::exposure(),
        limits::rows(),
        audit::rows(),
        languages::rows(),
        files::rows(),
        every_server::rows(),
        approvals::rows(),
        page::rows(),
        http::rows(),
        sharing::rows(),
        commands::rows(),
        stop::rows(),
    ]
    .concat();
    let title = "attempts on a managed host, each with a control on a host without requirements";
    let count = try_all(title, Since::Start, rows).await;
    assert!(count >= ATTEMPTS_MIN, "{count} attempts");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_attempt_of_a_user_delays_or_undoes_a_change() {
    if !can_mount() {
        return;
    }
    let title = "attempts while the requirements change, each with a control without a change";
    try_all(title, Since::Change, [reloads::rows(), suspended::rows()].concat()).await;
}

//! Tests of `lockhouse sessions`, the command with which an operator lists and ends sessions.

use lockhouse_tests::{Lockhouse, Table, ensure, equal, structured, wait_until};
use serde_json::{Value, json};

use crate::sessions::{outcome_text, text};

#[tokio::test]
async fn sessions_are_listed_and_ended() {
    let lockhouse = Lockhouse::new();
    let (session, other) = (lockhouse.serve().await, lockhouse.serve().await);
    let mut table = Table::new("lockhouse sessions");
    let run = |arguments: &[&str]| lockhouse.run(&[&["sessions"], arguments].concat());
    table.row("none is open", equal(run(&["list"]).stdout, "No session is open.\n".into()));
    table.row("none, as JSON", equal(run(&["list", "--json"]).stdout, "[]\n".into()));
    session.run_in("report", "python", "1").await;
    session.run_in("report", "python", "2").await;
    session.run_in("chart", "typescript", "1").await;
    other.run_in("report", "python", "1").await;
    let running = session.start_with(
        json!({"language": "python", "code": "import time; time.sleep(50)", "session": "chart2"}),
    );
    let listed = || serde_json::from_str::<Vec<Value>>(&run(&["list", "--json"]).stdout).unwrap();
    let rows = wait_until("all of them", async || Some(listed()).filter(|rows| rows.len() == 4)).await;
    let row = |name: &str, pid: u32| {
        rows.iter().find(|row| row["name"] == name && row["pid"] == pid).cloned().unwrap_or_default()
    };
    let found = row("report", session.pid());
    let holds = found["runs"] == 2 && found["language"] == "python" && found["state"] == "idle";
    table.row("one that is idle", ensure(holds, &rows));
    table.row("one that runs", equal(text(&row("chart2", session.pid())["state"]), "running"));
    table.row("one of another client", ensure(row("report", other.pid())["runs"] == 1, &rows));
    let shown = run(&["list"]).stdout;
    let heads = [
        "id",
        "session",
        "owner",
        "connection ",
        "(lockhouse-tests)",
        "language",
        "state",
        "runs",
        "report",
        "chart2",
        &session.pid().to_string(),
    ];
    table.row("for people", ensure(heads.iter().all(|head| shown.contains(head)), &shown));

    let ended = run(&["end", "chart2"]);
    table.row(
        "one that runs is ended",
        ensure(ended.status == Some(0) && ended.stdout.contains("chart2: ended"), &ended),
    );
    let answer = structured(running.await.unwrap());
    let holds =
        answer["status"] == "cancelled" && text(&answer["session"]["ended"]).contains("a person ended it");
    table.row("and its run is cancelled", ensure(holds, &answer));
    let refused = run(&["end", "report"]);
    let id = |pid: u32| format!("{pid}/{}", row("report", pid)["id"]);
    let ids = [session.pid(), other.pid()].iter().all(|pid| refused.stderr.contains(&id(*pid)));
    let none =
        refused.status == Some(1) && refused.stderr.contains("none was ended") && refused.stdout.is_empty();
    table.row("a name that two clients use", ensure(ids && none, &refused));
    table.row("and both go on", equal(listed().len(), 3));
    let beginning = run(&["end", &format!("{}/", other.pid())]);
    let none = beginning.status == Some(1) && beginning.stderr.contains("no session ");
    table.row("the beginning of an id is none", ensure(none, &beginning));
    let ended = run(&["end", &id(session.pid())]);
    let one = format!("report: ended (lockhouse {})\n", session.pid());
    table.row("one of them by its id", equal(&ended.stdout, &one));
    let left: Vec<Value> =
        listed().iter().filter(|row| row["name"] == "report").map(|row| row["pid"].clone()).collect();
    table.row("and the other one goes on", equal(left, vec![json!(other.pid())]));
    let prefix = run(&["end", "rep"]);
    let one = format!("report: ended (lockhouse {})\n", other.pid());
    table.row("the beginning of a name", ensure(prefix.status == Some(0) && prefix.stdout == one, &prefix));
    let answer = session.run_in("report", "python", "1").await;
    table.row("its client is told", ensure(outcome_text(&answer).contains("a person ended it"), &answer));
    let again = run(&["end", "nothing"]);
    table.row(
        "one that is not there",
        ensure(again.status == Some(1) && again.stderr.contains("no session nothing"), &again),
    );
    let all = run(&["end", "--all"]);
    table.row("all", ensure(all.status == Some(0) && all.stdout.contains("chart: ended"), &all));
    table.row("none is left", equal(run(&["list"]).stdout, "No session is open.\n".into()));
    for (arguments, words) in [
        (&["end"][..], "Usage"),
        (&["end", "a b"], "1 to 64 letters"),
        (&["end", ""], "1 to 64 letters"),
        (&["end", "x", "--all"], "cannot be used with"),
        (&[], "Usage"),
    ] {
        let finished = run(arguments);
        let holds = finished.status == Some(2) && finished.stderr.contains(words);
        table.row(format!("wrong: {arguments:?}"), ensure(holds, &finished));
    }
    table.finish();
}

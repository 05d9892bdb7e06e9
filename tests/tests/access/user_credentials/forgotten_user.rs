//! Tests of `lockhouse user forget`.

use lockhouse_tests::{CommandOutput, Table, ensure, equal};
use serde_json::{Value, json};

use super::Service;
use crate::access::{list_tools, status_and_error};

fn forget(service: &Service, arguments: &[&str]) -> CommandOutput {
    let mut command = service.lockhouse.command(&[&["user", "forget"], arguments].concat());
    command.env("CREDENTIALS_DIRECTORY", service.lockhouse.path("credentials"));
    CommandOutput::run(&mut command, b"")
}

/// Returns the users who own the open sessions.
fn owners_of_sessions(service: &Service) -> Value {
    let listed = service.lockhouse.run(&["sessions", "list", "--json"]).json();
    listed.as_array().into_iter().flatten().map(|session| session["owner"].clone()).collect()
}

#[tokio::test]
async fn nothing_of_a_forgotten_user_remains_but_records() {
    let service = Service::new(2, 2);
    let daemon = service.daemon().await;
    let mut table = Table::new("a user who is forgotten");
    let (ada, bob) = (&service.users[0], &service.users[1]);
    for user in [ada, bob] {
        for server in service.names() {
            service.log_in(user, &server).await;
        }
        let client = daemon.http_client(Some(&user.1));
        client.call("run_code", json!({"language": "python", "code": "x = 1", "session": "own"})).await;
    }
    table.row("control: files of both", equal(service.stored().len(), 6));
    table.row(
        "control: sessions of both",
        equal(owners_of_sessions(&service), json!(["token:user-0", "token:user-1"])),
    );

    for (name, words) in [
        ("user:no-such-user", "this host has no user no-such-user"),
        ("oauth:ada", "needs [http.oauth]"),
        ("a name", "is not the name of a token"),
    ] {
        let refused = forget(&service, &[name, "--yes"]);
        let is_right = refused.status == Some(2) && refused.stderr.contains(words);
        table.row(format!("refused: {name}"), ensure(is_right, &refused));
    }
    let unconfirmed = forget(&service, &[&ada.0]);
    table.row("without a confirmation", ensure(unconfirmed.stderr.contains("--yes"), &unconfirmed));
    let shown = forget(&service, &[&ada.0, "--dry-run"]);
    table.row("a dry run removes nothing", equal((shown.status, service.stored().len()), (Some(0), 6)));

    let done = forget(&service, &[&ada.0, "--yes"]);
    table.row("the command", ensure(done.status == Some(0) && done.stderr.is_empty(), &done));
    for line in ["tokens: removed", "credentials for s0: removed", "credentials for process: removed"] {
        table.row(line, ensure(done.stdout.contains(line), &done.stdout));
    }
    table.row("files of the other", equal(service.stored().len(), 3));
    table.row("tokens are revoked at the server", equal(service.servers[0].has_tokens_of(&ada.0), false));
    table.row("control: those of the other are not", equal(service.servers[0].has_tokens_of(&bob.0), true));
    let refused = list_tools(&daemon.http_client(Some(&ada.1))).await;
    table.row("a request with the token", equal(status_and_error(&refused), "401 invalid_token".into()));
    let tokens = service.lockhouse.run(&["token", "list"]).stdout;
    table.row("the list of tokens", ensure(!tokens.contains(&ada.0) && tokens.contains(&bob.0), &tokens));
    table.row("sessions", equal(owners_of_sessions(&service), json!(["token:user-1"])));
    let callers = service.callers(&daemon, bob).await;
    table.row("calls of the other", equal(callers, vec![bob.0.clone(); 3]));
    let records = service.lockhouse.records();
    let found: Vec<&Value> =
        records.iter().filter(|record| record["event"] == "change" && record["target"] == "user").collect();
    let is_nameless = found.len() == 1 && !found[0].to_string().contains(&ada.0);
    table.row("the record names nobody", ensure(is_nameless, &found));

    let again = forget(&service, &[&ada.0, "--yes"]);
    let is_empty = again.status == Some(0) && again.stdout.contains("tokens: none");
    table.row("again", ensure(is_empty && again.stdout.contains("other credentials: none"), &again));
    table.finish();
}

/// Returns the records of a client as a reader sees them.
fn records_of(service: &Service, client: &str) -> usize {
    let found = service.lockhouse.run(&["audit", "query", "--json", "--client", client]);
    found.stdout.lines().filter(|line| line.contains(&format!("\"client\":\"{client}\""))).count()
}

/// Returns the names of the files of the log that contain a text.
fn files_with(service: &Service, text: &str) -> Vec<String> {
    let log = service.lockhouse.audit_directory();
    let files = std::fs::read_dir(log).expect("a log").map(|file| file.expect("a file"));
    let found =
        files.filter(|file| std::fs::read_to_string(file.path()).is_ok_and(|found| found.contains(text)));
    let mut names: Vec<String> = found.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn records_lose_the_name_of_a_forgotten_user_and_verify() {
    let service = Service::with_config(2, 1, "[audit]\nerasable_names = true\n");
    let daemon = service.daemon().await;
    let mut table = Table::new("records of a user who is forgotten");
    let (ada, bob) = (&service.users[0], &service.users[1]);
    for user in [ada, bob] {
        for server in service.names() {
            service.log_in(user, &server).await;
        }
        service.callers(&daemon, user).await;
        let denied = json!({"language": "python", "code": "call_tool('process', 'no_such_tool', {})"});
        daemon.http_client(Some(&user.1)).call("run_code", denied).await;
    }
    let before = records_of(&service, &bob.0);
    table.row(
        "control: a reader sees names",
        ensure(records_of(&service, &ada.0) == before && before > 8, before),
    );
    let usage = service.lockhouse.run(&["usage", "--csv"]).stdout;
    table.row("control: usage", ensure(usage.contains(&ada.0) && usage.contains(&bob.0), &usage));
    table.row("files with the name", equal(files_with(&service, &ada.0), vec!["names.jsonl".to_owned()]));

    let done = forget(&service, &[&ada.0, "--yes"]);
    let is_erased = done.status == Some(0) && done.stdout.contains("name in the audit log: erased");
    table.row("the command", ensure(is_erased, &done));
    table.row("files with the name after that", equal(files_with(&service, &ada.0), Vec::new()));
    table.row("records of that name", equal(records_of(&service, &ada.0), 0));
    table.row("control: of the other", equal(records_of(&service, &bob.0), before));
    let usage = service.lockhouse.run(&["usage", "--csv"]).stdout;
    let is_unnamed = !usage.contains(&ada.0) && usage.contains("name:") && usage.contains(&bob.0);
    table.row("usage counts somebody", ensure(is_unnamed, &usage));
    let verified = service.lockhouse.run(&["audit", "verify"]);
    table.row("the log verifies", ensure(verified.status == Some(0), &verified));
    daemon.kill().await;
    let again = service.daemon().await;
    table.row("after a restart", equal(service.callers(&again, bob).await, vec![bob.0.clone(); 2]));
    table.row("names after a restart", equal(files_with(&service, &ada.0), Vec::new()));
    table.finish();
}

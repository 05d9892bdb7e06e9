//! Tests of who operates the engine of the system: the person within limits, and root.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use lockhouse_tests::{CommandOutput, Table, ensure, equal};
use serde_json::{Value, json};

use super::host::{Host, OTHER_PERSON, PERSON, can_manage};

const POLICY: &str = "version = 1\n[servers.fixture]\nask = [\"echo\"]\n";
const ROOT: u32 = 0;

/// Runs a command for at most the time in which an engine answers.
fn run(command: &mut Command) -> CommandOutput {
    CommandOutput::run(command, b"")
}

/// Returns the first line that a command prints which would run for ever.
fn first_line(mut command: Command) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_operates_the_engine_and_root_approves() {
    if !can_manage() {
        return;
    }
    let host = Host::managed(POLICY).await;
    let client = host.client().await;
    assert_eq!(client.run_code("python", "1+1").await["value"], 2);
    let mut table = Table::new("who operates the engine of a person");
    for (account, engines) in [(PERSON, 1), (ROOT, 1), (OTHER_PERSON, 0)] {
        let status = run(&mut host.lockhouse_as(account, &["status", "--json"]));
        let listed: Value = serde_json::from_str(&status.stdout).unwrap_or_default();
        let count = listed.as_array().or(listed["processes"].as_array()).map_or(0, Vec::len);
        table.row(
            format!("{account}: status"),
            equal(count, engines).map_err(|why| format!("{why} {status:?}")),
        );
    }
    let checked = run(&mut host.lockhouse_as(PERSON, &["config", "check"]));
    let is_told = checked.stderr.contains("yours have no effect on it");
    table.row("the person is told whose configuration is in force", ensure(is_told, &checked));
    let reload = run(&mut host.lockhouse_as(PERSON, &["reload"]));
    table.row("the person reloads it", ensure(reload.status == Some(0), &reload));
    let told = first_line(host.lockhouse_as(PERSON, &["approvals", "--json"]));
    let is_told = told.contains("an administrator answers there");
    table.row("the person is told who approves", ensure(is_told, &told));

    let mut command = host.lockhouse_as(ROOT, &["approvals", "--json"]);
    let mut approver = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut answers, questions) = (approver.stdin.take().unwrap(), approver.stdout.take().unwrap());
    let answering = std::thread::spawn(move || {
        for line in BufReader::new(questions).lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let Some(question) = message.get("ask") else { continue };
            let answer = json!({"id": question["id"], "digest": question["digest"], "decision": "approve", "scope": "once"});
            writeln!(answers, "{}", json!({"supervisor": message["supervisor"], "answer": answer})).unwrap();
            break;
        }
        // The command ends with its standard input.
        answers
    });
    let approved = client.run_code("python", "from fixture import echo\necho(value=7)['value']").await;
    table.row(
        "root approves a call",
        equal(approved["value"].clone(), json!(7)).map_err(|why| format!("{why} {approved}")),
    );
    let _ = approver.kill();
    let _ = approver.wait();
    let _ = answering.join();
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_gives_the_engine_of_the_system_no_servers() {
    if !can_manage() {
        return;
    }
    let add = ["server", "add", "mine", "--no-connect", "https://tickets.example.com/mcp"];
    let says = format!(
        "lockhouse: nothing was changed: your AI clients use the engine of this host, and its servers are the administrator's. \
         Ask the administrator to add mine to the configuration of the engine of user {PERSON}\n"
    );
    let (managed, unmanaged) = (Host::managed(POLICY).await, Host::unmanaged(POLICY));
    let mut table = Table::new("a server that a person adds");
    let configuration = |host: &Host| {
        std::fs::read_to_string(host.path("home/.config/lockhouse/config.toml")).unwrap_or_default()
    };
    let output = run(&mut managed.lockhouse_as(PERSON, &add));
    table.row("a managed host refuses it", equal((output.status, output.stderr), (Some(2), says)));
    table.row("nothing is added", ensure(!configuration(&managed).contains("mine"), configuration(&managed)));
    let output = run(&mut unmanaged.lockhouse_as(PERSON, &add));
    let is_added = output.status == Some(0) && configuration(&unmanaged).contains("mine");
    table.row("control: a host that nobody manages adds it", ensure(is_added, &output));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_files_are_for_the_person_and_root() {
    if !can_manage() {
        return;
    }
    let mut host = Host::managed(POLICY).await;
    host.start_engine_of_other(POLICY).await;
    let client = host.client().await;
    // Three parts of what the engine sends at a time.
    let code =
        "open('/out/a.bin', 'wb').write(bytes(range(251)) * 10_000)\nopen('/out/empty', 'w').close()\n1";
    let answer = client.run_code("python", code).await;
    let handle = |name: &str| {
        let files = answer["files"].as_array().into_iter().flatten();
        let mut handles =
            files.filter(|file| file["name"] == name).filter_map(|file| file["handle"].as_str());
        handles.next().unwrap_or_else(|| panic!("{answer}"))
    };
    std::fs::create_dir(host.path("root-home")).unwrap();
    let content: Vec<u8> = (0..251).cycle().take(251 * 10_000).collect();
    let mut table = Table::new("files that a run of the person returned");
    for (account, home) in [(PERSON, "home"), (ROOT, "root-home"), (OTHER_PERSON, "other-home")] {
        for (name, whole) in [("a.bin", content.as_slice()), ("empty", b"")] {
            let folder = format!("{home}/saved by {account}");
            let out = host.path(&folder);
            let arguments = ["result", handle(name), "--out", out.to_str().unwrap()];
            let saved = run(host.lockhouse_as(account, &arguments).env("HOME", host.path(home)));
            let written = std::fs::read(host.path(&format!("{folder}/{name}"))).ok();
            let holds = match account {
                OTHER_PERSON => written.is_none() && saved.stderr.contains("there is no file"),
                _ => saved.status == Some(0) && written.as_deref() == Some(whole),
            };
            table.row(format!("{account}: {name}"), ensure(holds, &saved));
        }
    }
    let place = "find $STATE -name '*.content' -exec cat {} + | wc -c";
    let direct = run(&mut host.shell_as(PERSON, place));
    table.row("the person cannot open the file itself", equal(direct.stdout.trim(), "0"));
    let direct = run(&mut host.shell_as(ROOT, place));
    table.row("control: root", equal(direct.stdout.trim(), content.len().to_string().as_str()));
    table.finish();
}

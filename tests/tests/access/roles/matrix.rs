//! Eight people with different roles, and the actions of each way to a service: what is permitted, and nothing else.

use std::time::Duration;

use lockhouse_tests::{Approver, CommandOutput, Daemon, Page, PageBrowser, Table, equal};
use serde_json::{Value, json};

use super::{Person, Service, can_change_account, items};

const PEOPLE: [(&str, &[&str]); 8] = [
    ("runner", &["run"]),
    ("approver", &["approve"]),
    ("author", &["policy"]),
    ("auditor", &["audit"]),
    ("operator", &["operate"]),
    ("emergency", &["approve", "break_glass"]),
    ("everything", &["run", "approve", "policy", "audit", "operate"]),
    ("nobody", &[]),
];

const POLICY: &str = "[servers.fixture]\nallow = [\"text\"]\nask = [\"add\"]\n";

/// A request over HTTP: its name, the method and the parameters. All need `run`.
fn http_requests() -> [(&'static str, &'static str, Value); 4] {
    [
        (
            "run code",
            "tools/call",
            json!({"name": "run_code", "arguments": {"language": "python", "code": "6 * 7"}}),
        ),
        ("search tools", "tools/call", json!({"name": "search_tools", "arguments": {"query": "text"}})),
        ("list tools", "tools/list", json!({})),
        ("list resources", "resources/list", json!({})),
    ]
}

/// A line for the socket, and what it needs.
fn socket_lines() -> [(&'static str, Value, &'static str); 11] {
    [
        ("health", json!({"health": 1}), "operate"),
        ("list sessions", json!({"list_sessions": 1}), "operate"),
        ("end a session", json!({"end_session": "nothing"}), "operate"),
        ("end all sessions", json!({"end_sessions": 1}), "operate"),
        ("list runs", json!({"list_runs": 1}), "operate"),
        ("end a run", json!({"end_run": "0191a2b3-0000-7000-8000-000000000000"}), "operate"),
        ("reload", json!({"reload": 1}), "operate"),
        ("list results", json!({"list_results": 1}), "audit"),
        ("read a result", json!({"read_result": {"handle": "r-0000000000000000", "offset": 0}}), "audit"),
        ("find a file", json!({"find_file": "f-0000000000000000"}), "audit"),
        ("watch questions", json!({"watch": 1}), "approve"),
    ]
}

/// A command of the command line, and what it needs.
const COMMANDS: [(&str, &[&str], &str); 4] = [
    ("status", &["status", "--json"], "operate"),
    ("runs", &["runs", "list", "--json"], "operate"),
    ("sessions", &["sessions", "list", "--json"], "operate"),
    ("a file", &["result", "f-0000000000000000", "--out", "/tmp"], "audit"),
];

/// An action of the page, with its body, and what it needs.
fn page_actions(execution: &str) -> [(&'static str, Value, &'static str); 15] {
    let question = json!({"supervisor": 1, "id": 1, "digest": "", "scope": "once"});
    let mut answer = question.clone();
    answer["decision"] = "approve".into();
    let key = json!({"code": "", "credential": "", "client_data": "", "authenticator_data": "", "public_key": "", "algorithm": 0});
    let tool = json!({"server": "fixture", "tool": "env", "effect": "allow"});
    let mut change = tool.clone();
    change["digest"] = "".into();
    let server = json!({"server": "nothing"});
    let definitions = json!({"server": "nothing", "digest": ""});
    [
        ("approvals/answer", answer, "approve"),
        ("approvals/challenge", question, "approve"),
        ("keys/register", key, "approve"),
        ("policy/proposals", json!({}), "policy"),
        ("policy/challenge", json!({"supervisor": 1, "digest": ""}), "policy"),
        ("policy/accept", json!({"supervisor": 1, "digest": ""}), "policy"),
        ("policy/preview", tool, "policy"),
        ("policy/apply", change, "policy"),
        ("servers/review", server, "policy"),
        ("servers/accept", definitions.clone(), "policy"),
        ("servers/challenge", definitions, "policy"),
        ("runs/end", json!({"supervisor": 1, "execution": execution}), "operate"),
        ("sessions/end", json!({"supervisor": 1, "id": 1}), "operate"),
        ("reload", json!({}), "operate"),
        ("audit/verify", json!({}), "audit"),
    ]
}

/// A section of the page with a member that is a list, and what is needed to see what belongs to others in it.
const SECTIONS: [(&str, &str, &[&str]); 6] = [
    ("processes", "processes", &["operate"]),
    ("runs", "recent", &["operate", "audit"]),
    ("sessions", "sessions", &["operate"]),
    ("denials", "denials", &["policy", "audit"]),
    ("servers", "servers", &["policy", "operate"]),
    ("savings", "days", &["operate", "audit"]),
];

fn word(is_permitted: bool) -> String {
    if is_permitted { "permitted" } else { "refused" }.to_owned()
}

/// Sends a line to the socket as the account of a person. Returns whether there was an answer.
fn ask_socket(service: &Service, person: &Person, line: &Value) -> bool {
    const CLIENT: &str = "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.settimeout(20)\ns.connect(sys.argv[1])\n\
                          s.sendall(sys.argv[2].encode() + b'\\n')\nsys.stdout.write(str(len(s.recv(1))))";
    let account = format!("--reuid={}", person.account);
    let mut command = std::process::Command::new("setpriv");
    command
        .args([account.as_str(), "--clear-groups", "--", "/usr/bin/python3", "-c", CLIENT])
        .current_dir("/");
    command.arg(service.socket()).arg(line.to_string());
    let output = CommandOutput::run(&mut command, b"");
    assert_eq!(output.status, Some(0), "{output:?}");
    output.stdout == "1"
}

async fn check_http(table: &mut Table, daemon: &Daemon, person: &Person) {
    for (name, method, parameters) in http_requests() {
        let reply = daemon.http_client(Some(&person.token)).request(method, parameters).await;
        let expected = if person.may(&["run"]) { 200 } else { 403 };
        table.row(format!("{}: HTTP, {name}", person.name), equal(reply.status, expected));
    }
}

fn check_socket(table: &mut Table, service: &Service, person: &Person) {
    for (name, line, needed) in socket_lines() {
        let found = ask_socket(service, person, &line);
        let row = format!("{}: socket, {name}", person.name);
        table.row(row, equal(word(found), word(person.may(&[needed]))));
    }
}

fn check_commands(table: &mut Table, service: &Service, person: &Person) {
    for (name, arguments, needed) in COMMANDS {
        let output = CommandOutput::run(&mut service.command(person, arguments), b"");
        let is_refused = output.stderr.contains("this access does not permit");
        let row = format!("{}: command, {name}", person.name);
        table.row(row, equal(word(!is_refused), word(person.may(&[needed]))));
    }
}

async fn check_page(table: &mut Table, page: &Page, person: &Person, (execution, of_other): (&str, &str)) {
    let row = |what: &str| format!("{}: page, {what}", person.name);
    if person.may.is_empty() {
        let refused = page.log_in(&person.token).await.error_code();
        return table.row(row("login"), equal(refused, "no_session".into()));
    }
    let browser: PageBrowser = page.browser_of(&person.token).await;
    for (path, body, needed) in page_actions(execution) {
        let is_permitted = browser.post(&format!("/api/{path}"), body).await.error_code() != "forbidden";
        table.row(row(path), equal(word(is_permitted), word(person.may(&[needed]))));
    }
    let mut events = browser.events().await;
    let may = events.next("hello").await["may"].clone();
    let rights = ["approve", "policy", "audit", "operate"];
    let expected: Vec<&str> = rights.into_iter().filter(|right| person.may(&[right])).collect();
    table.row(row("what the page says of them"), equal(may, json!(expected)));
    for (section, list, needed) in SECTIONS {
        let sees = person.may(needed);
        let is_of_other = |item: &Value| match section {
            "savings" => items(&item["clients"]).iter().any(|client| client["client"] == "everything"),
            "runs" | "denials" => item["client"] == "everything",
            _ => true,
        };
        let mut events = browser.events().await;
        // What is shown may need a moment to be there.
        let shown = match sees {
            true => events.until(section, |shown| items(&shown[list]).iter().any(is_of_other)).await,
            false => events.next(section).await,
        };
        let found = items(&shown[list]).iter().any(is_of_other);
        table.row(row(&format!("section {section}")), equal(word(found), word(sees)));
    }
    let run = browser.get(&format!("/api/runs/{of_other}")).await.status == 200;
    table.row(row("a run of another"), equal(word(run), word(person.may(&["audit"]))));
    let records = browser.get("/api/audit?client=everything").await.json();
    let is_of_other = |found: &Value| found["record"]["client"] == "everything";
    let found = person.name != "everything" && items(&records["records"]).iter().any(is_of_other);
    let expected = person.name != "everything" && person.may(&["audit"]);
    table.row(row("records of another"), equal(word(found), word(expected)));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_does_what_their_role_permits_and_nothing_else() {
    if !can_change_account() {
        return;
    }
    let service = Service::new(&PEOPLE, POLICY, "");
    let daemon = service.daemon().await;
    let page = Page::start_service(&service.lockhouse).await;
    let mut table = Table::new("people and actions");
    // What others may see.
    let everything = daemon.http_client(Some(&service.person("everything").token));
    let code = "from mcp_tools import fixture, ToolError\nfixture.text(text='a' * 2000)\ntry: fixture.delete_everything()\nexcept ToolError: pass\nx = 1";
    let run = json!({"language": "python", "code": code, "session": "own"});
    everything.call("run_code", run).await;
    let records = service.lockhouse.records();
    let of_other = records.iter().find(|record| record["event"] == "execution").expect("a run");
    let of_other = of_other["execution"].as_str().expect("an id").to_owned();
    for person in &service.people {
        check_http(&mut table, &daemon, person).await;
        check_page(&mut table, &page, person, ("0191a2b3-0000-7000-8000-000000000000", &of_other)).await;
        check_commands(&mut table, &service, person);
    }
    // These end sessions.
    for person in &service.people {
        check_socket(&mut table, &service, person);
    }
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_changes_roles_at_once() {
    if !can_change_account() {
        return;
    }
    let service = Service::new(&[("desk", &["run"]), ("lead", &["approve", "operate"])], POLICY, "");
    let daemon = service.daemon().await;
    let page = Page::start_service(&service.lockhouse).await;
    let (desk, lead) = (service.person("desk"), service.person("lead"));
    let mut table = Table::new("roles that change");
    let client = daemon.http_client(Some(&desk.token));
    let browser = page.browser_of(&lead.token).await;
    let status = client.request("tools/list", json!({})).await.status;
    table.row("control: it runs", equal(status, 200));
    let mut approver = Approver::spawn(service.command(lead, &["approvals", "--json"]));
    approver.next("watching").await;
    service
        .lockhouse
        .file("config/lockhouse/policy.toml", "version = 1\n[roles.x]\nmembers = [\"x\"]\nmay = [\"run\"]\n");
    let reloaded = service.lockhouse.run(&["reload"]);
    table.row("reload", equal(reloaded.status, Some(0)));
    let status = client.request("tools/list", json!({})).await.status;
    table.row("HTTP", equal(status, 403));
    table.row("socket", equal(ask_socket(&service, lead, &json!({"health": 1})), false));
    tokio::time::timeout(Duration::from_secs(20), async {
        while browser.get("/api/audit").await.error_code() != "no_session" {}
    })
    .await
    .expect("the session ends");
    table.finish();
}

//! Tests of logins to upstream servers on a managed host: the engine logs in, and the person's side opens an address.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use lockhouse_tests::{CommandOutput, HttpServer, Table, ensure, equal, wait_until};
use serde_json::{Value, json};

use super::host::{ENGINE, Host, OTHER_PERSON, PERSON, can_manage};
use crate::mcp::upstream_login::{Behaviour, COOPERATIVE, start_authorization_server};

const ROOT: u32 = 0;
const POLICY: &str = "version = 1\n[servers.web]\nallow = [\"*\"]\n";
const LOOK: &str = "from mcp_tools import call_tool\ncall_tool('web', 'look', {})";

/// Starts a host whose engine has a server that needs a login, with these further requirements.
async fn host_with_server(server: &HttpServer, requirements: &str) -> Host {
    let mut host = Host::managed_with(POLICY, requirements).await;
    host.kill_engine();
    // HTTP clients read them.
    const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";
    host.write(CERTIFICATES, &std::fs::read_to_string(format!("/{CERTIFICATES}")).unwrap_or_default());
    let path = host.path("engine/config/lockhouse/config.toml");
    let configured = std::fs::read_to_string(&path).unwrap();
    let web = format!("[servers.web]\nurl = \"{}\"\nstart_timeout_seconds = 10\n", server.url("/mcp"));
    std::fs::write(&path, configured + &web).unwrap();
    host.start_engine().await;
    host
}

/// What `bring` does with the address to which the browser is redirected.
enum Bring {
    Browser,
    Paste,
    PasteOfOther,
}

/// Runs a command that logs in, in whose output the address appears. Returns its status, and all it has printed after the
/// address.
fn log_in(mut command: Command, bring: &Bring) -> (Option<i32>, String) {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, mut said) = (child.stdin.take().unwrap(), String::new());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    if let Some(address) = lines.by_ref().find(|line| line.trim().starts_with("http://")) {
        let redirected = HttpServer::browse(address.trim());
        let back = redirected.headers.get("location").unwrap().clone();
        match bring {
            Bring::Browser => {
                let page = HttpServer::browse(&back);
                assert_eq!(page.path, "200", "{page:?}");
            }
            Bring::Paste => writeln!(stdin, "{back}").unwrap(),
            Bring::PasteOfOther => writeln!(stdin, "{}0", back).unwrap(),
        }
    }
    lines.for_each(|line| said.push_str(&(line + "\n")));
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

fn as_root(host: &Host) -> Command {
    host.lockhouse_as(ROOT, &["server", "login", "web", "--no-browser", "--person", &PERSON.to_string()])
}

/// Returns the steps of logins that are recorded.
fn recorded(host: &Host) -> Vec<Value> {
    let records = host.records().into_iter().filter(|record| record["event"] == "login");
    records.map(|record| record["outcome"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_logs_in_and_the_person_only_opens_an_address() {
    if !can_manage() {
        return;
    }
    let server = start_authorization_server(COOPERATIVE);
    let host = host_with_server(&server, "").await;
    let client = host.client().await;
    let mut table = Table::new("a login on a managed host");
    let before = client.run_code("python", LOOK).await;
    let message = before["error"]["message"].as_str().unwrap_or_default();
    table.row("before", ensure(message.contains("login"), &before));
    for account in [PERSON, OTHER_PERSON] {
        let mut command = host.lockhouse_as(account, &["server", "login", "web", "--no-browser"]);
        let refused = CommandOutput::run(&mut command, b"");
        table.row(format!("the account {account}"), ensure(refused.status != Some(0), &refused));
    }
    let (status, said) = log_in(as_root(&host), &Bring::PasteOfOther);
    let is_refused = status == Some(7) && said.contains("not logged in to web");
    table.row("an address of another login", ensure(is_refused, (status, &said)));
    table.row("it is recorded", equal(recorded(&host), vec![json!("answered"), json!("failed")]));
    let (status, said) = log_in(as_root(&host), &Bring::Browser);
    table.row(
        "root for the person, with a browser",
        ensure(status == Some(0) && said.contains("Logged in to web."), (status, &said)),
    );
    let after = wait_until("the engine connects again, within 45 s", async || {
        let answer = client.run_code("python", LOOK).await;
        answer["value"].is_string().then_some(answer)
    })
    .await;
    table.row("the server answers", equal(after["value"].clone(), json!("token 1")));
    let tokens: Vec<_> = std::fs::read_dir(host.path("engine/state/tokens")).unwrap().flatten().collect();
    for token in &tokens {
        let facts = token.metadata().unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&facts);
        table.row(
            "the token is the engine's",
            equal((owner, facts.permissions().mode() & 0o777), (ENGINE, 0o600)),
        );
    }
    let script =
        format!("cat {}/tokens/* $HOME/.local/state/lockhouse/tokens/*", host.path("engine/state").display());
    let read = CommandOutput::run(&mut host.shell_as(PERSON, &script), b"");
    table.row(
        "the person cannot read it",
        ensure(read.status != Some(0) && !read.stdout.contains("SEKRET"), &read),
    );
    let answered = [json!("answered"), json!("failed"), json!("answered"), json!("granted")];
    table.row("it is recorded", equal(recorded(&host), answered.to_vec()));
    let log = host.engine_log();
    table.row("no secret is logged", ensure(!log.contains("SEKRET"), &log));
    let mut command = host.lockhouse_as(PERSON, &["server", "logout", "web"]);
    let output = CommandOutput::run(&mut command, b"");
    table.row("the person logs out", ensure(output.stdout.starts_with("Deleted the token of web."), &output));
    let output = CommandOutput::run(&mut command, b"");
    table.row("and again", equal(output.stdout.clone(), "There is no stored token of web.\n".to_owned()));
    let (status, said) = log_in(as_root(&host), &Bring::Paste);
    table.row(
        "a pasted address",
        ensure(status == Some(0) && said.contains("Logged in to web."), (status, &said)),
    );
    drop(client);
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_is_not_granted_says_why() {
    if !can_manage() {
        return;
    }
    let server = start_authorization_server(Behaviour { consents: false, ..COOPERATIVE });
    let host = host_with_server(&server, "").await;
    let mut table = Table::new("a login that fails");
    let (status, said) = log_in(as_root(&host), &Bring::Browser);
    let expected =
        "lockhouse: not logged in to web: the authorization server did not grant it: access_denied\n";
    table.row(
        "the person does not consent",
        ensure(status == Some(7) && said.ends_with(expected), (status, &said)),
    );
    for (name, words) in [
        ("fixture", "there is no server fixture over HTTP in the configuration of the engine"),
        ("none", "there is no server none over HTTP"),
        ("../x", "is no name of a server"),
    ] {
        let mut command =
            host.lockhouse_as(ROOT, &["server", "login", name, "--person", &PERSON.to_string()]);
        let output = CommandOutput::run(&mut command, b"");
        table.row(name, ensure(output.status == Some(2) && output.stderr.contains(words), &output));
    }
    table.finish();
}

/// Stands for sudo: notes its arguments, and waits until the password was given.
const SUDO: &str = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >\"$HOME/asked.part\"\nmv \"$HOME/asked.part\" \"$HOME/asked\"\n\
                    while [ ! -e \"$HOME/given\" ]; do sleep 0.05; done\nexit \"$(cat \"$HOME/given\")\"\n";

/// Runs `lockhouse server login` as the person. `give` gives the password to what sudo asks, or refuses it.
fn log_in_with_password(host: &Host, give: impl FnOnce(&str) -> u8 + Send) -> (Option<i32>, String) {
    for name in ["home/asked", "home/given"] {
        let _ = std::fs::remove_file(host.path(name));
    }
    let mut command =
        host.lockhouse_as(PERSON, &["server", "login", "web", "--no-browser", "--scope", "read"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", host.path("tools").display()));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let asked = loop {
                match std::fs::read_to_string(host.path("home/asked")) {
                    Ok(asked) => break asked,
                    Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
                }
            };
            let status = give(&asked);
            host.write("home/given.part", &status.to_string());
            std::fs::rename(host.path("home/given.part"), host.path("home/given")).unwrap();
        });
        log_in(command, &Bring::Browser)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_begins_a_login_with_a_password() {
    if !can_manage() {
        return;
    }
    let server = start_authorization_server(COOPERATIVE);
    let host = host_with_server(&server, "[approvals]\npresence = \"password\"\n").await;
    host.write("tools/sudo", SUDO);
    std::fs::set_permissions(host.path("tools/sudo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut table = Table::new("a login that needs a password");
    let (status, said) = log_in_with_password(&host, |_| 1);
    table.row(
        "a wrong password",
        ensure(status == Some(7) && said.ends_with("lockhouse: it was not approved\n"), (status, &said)),
    );
    let as_root = |variables: &[(&str, u32)]| {
        let mut command = host.lockhouse_as(ROOT, &["log-in-server", "web", "--", "read"]);
        command.envs(variables.iter().map(|(name, uid)| (name, uid.to_string())));
        CommandOutput::run(&mut command, b"")
    };
    for (name, variables, words) in [
        ("root for nobody", &[][..], "says which person"),
        ("another person", &[("SUDO_UID", OTHER_PERSON)], "no engine of user"),
    ] {
        let output = as_root(variables);
        table.row(name, ensure(output.status != Some(0) && output.stderr.contains(words), &output));
    }
    let mut as_person = host.lockhouse_as(PERSON, &["log-in-server", "web"]);
    let output = CommandOutput::run(as_person.env("SUDO_UID", PERSON.to_string()), b"");
    table.row("the person in the place of root", ensure(output.stderr.contains("as root"), &output));
    table.row("nothing is recorded", equal(recorded(&host), Vec::new()));
    let mut asked = String::new();
    let (status, said) = log_in_with_password(&host, |shown| {
        shown.clone_into(&mut asked);
        u8::from(as_root(&[("SUDO_UID", PERSON)]).status != Some(0))
    });
    table.row(
        "sudo was told the server",
        equal(asked, "-k\n--\n/mnt/lockhouse\nlog-in-server\nweb\n--\nread\n".to_owned()),
    );
    table.row(
        "the right password",
        ensure(status == Some(0) && said.contains("Logged in to web."), (status, &said)),
    );
    let records = host.records();
    let granted = records.iter().find(|record| record["outcome"] == "granted").cloned().unwrap_or_default();
    let facts = ["presence", "uid"].map(|name| granted[name].clone());
    table.row("the record names method and person", equal(facts, [json!("sudo"), json!(PERSON)]));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn with_keys_root_begins_a_login() {
    if !can_manage() {
        return;
    }
    let server = start_authorization_server(COOPERATIVE);
    let host = host_with_server(&server, "[approvals]\npresence = \"key\"\n").await;
    let mut command = host.lockhouse_as(PERSON, &["server", "login", "web", "--no-browser"]);
    let refused = CommandOutput::run(&mut command, b"");
    let expected = format!(
        "lockhouse: on this host, root begins logins, because its requirements ask for no password of the person: sudo lockhouse \
         server login web --person {PERSON}\n"
    );
    assert!(refused.status == Some(2) && refused.stderr.ends_with(&expected), "{refused:?}");
    let (status, said) = log_in(as_root(&host), &Bring::Browser);
    assert_eq!(status, Some(0), "{said}");
}

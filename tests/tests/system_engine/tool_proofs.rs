//! Tests of changed tools of a server of the system's engine, which root accepts, or the person with a proof that they are there.

use std::os::unix::fs::PermissionsExt as _;

use lockhouse_tests::{CommandOutput, Session, Table, ensure, equal};
use serde_json::{Value, json};

use super::authenticator::Authenticator;
use super::host::{Host, OTHER_PERSON, PERSON, can_manage};
use super::presence::{KeyScene, host_with};
use super::proposal_proofs::SUDO;

const POLICY: &str = "version = 1\n[servers.shell]\nallow = [\"run\"]\non_change = \"ask\"\n";
const CALL: &str = "import shell\nshell.run(script='echo called')['output']";
const ROOT: u32 = 0;
const CHANGES: &str = "1 tools: run (changed)";

fn server(host: &Host, account: u32, arguments: &[&str]) -> CommandOutput {
    CommandOutput::run(&mut host.lockhouse_as(account, &[&["server"], arguments].concat()), b"")
}

/// Whether a program may call the tool.
async fn may_call(client: &Session) -> bool {
    client.run_code("python", CALL).await["value"] == "called\n"
}

/// Calls the server once, so that its tools are accepted, and changes them then.
async fn change_tools(host: &mut Host, description: &str) {
    let client = host.client().await;
    assert!(may_call(&client).await, "control: before the change");
    drop(client);
    let tools = std::fs::read_to_string(host.path("tools/shell_server.py")).unwrap();
    host.write("tools/shell_server.py", &tools.replace("Runs a script.", description));
    host.kill_engine();
    host.start_engine().await;
}

/// Returns the record of the accepted definitions.
fn record(host: &Host) -> Option<Value> {
    host.records().into_iter().find(|record| record["event"] == "definition")
}

fn accept_tools(host: &Host, changes: &str, digest: &str, variables: &[(&str, u32)]) -> CommandOutput {
    let mut command = host.lockhouse_as(ROOT, &["accept-tools", "shell", changes, digest]);
    command.envs(variables.iter().map(|(name, uid)| (name, uid.to_string())));
    CommandOutput::run(&mut command, b"")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_accepts_the_tools_that_were_shown() {
    if !can_manage() {
        return;
    }
    let mut host = host_with("password", POLICY).await;
    change_tools(&mut host, "Runs every script.").await;
    let client = host.client().await;
    let mut table = Table::new("changed tools that the person accepts with a password");
    table.row("a changed tool is not called", ensure(!may_call(&client).await, "it was called"));
    host.write("tools/sudo", SUDO);
    std::fs::set_permissions(host.path("tools/sudo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut accept = host.lockhouse_as(PERSON, &["server", "accept", "shell"]);
    accept.env("PATH", format!("{}:/usr/bin:/bin", host.path("tools").display()));
    let output = CommandOutput::run(&mut accept, b"");
    let is_shown = output.stdout.contains("+  \"description\": \"Runs every script.\"");
    let is_refused = output.status != Some(0) && output.stderr == "lockhouse: it was not approved\n";
    table.row("the person sees the change, and sudo refuses", ensure(is_shown && is_refused, &output));
    let arguments = std::fs::read_to_string(host.path("home/sudo-arguments")).unwrap_or_default();
    let digest = arguments.lines().last().unwrap_or_default().to_owned();
    let expected = format!("-k\n--\n/mnt/lockhouse\naccept-tools\nshell\n{CHANGES}\n{digest}\n");
    table.row("sudo was told which tools", equal(arguments, expected));
    let sudo = [("SUDO_UID", PERSON)];
    let mut refuse = |name: &str, (changes, digest): (&str, &str), variables: &[(&str, u32)], words: &str| {
        let output = accept_tools(&host, changes, digest, variables);
        table.row(name, ensure(output.status != Some(0) && output.stderr.contains(words), &output));
    };
    let right = (CHANGES, digest.as_str());
    refuse("root for nobody", right, &[], "says which person");
    refuse("another person", right, &[("PKEXEC_UID", OTHER_PERSON)], "no engine of user");
    refuse("other changes", ("0 tools: ", &digest), &sudo, "not the tools that were shown");
    refuse("another digest", (CHANGES, "sha256:0"), &sudo, "not the tools that were shown");
    table.row("nothing is recorded", equal(record(&host), None));
    table.row("still not called", ensure(!may_call(&client).await, "it was called"));
    let output = accept_tools(&host, CHANGES, &digest, &sudo);
    table.row("the person's password", ensure(output.status == Some(0), &output));
    let recorded = record(&host).unwrap_or_default();
    let facts = ["server", "presence", "uid", "digest"].map(|name| recorded[name].clone());
    table.row("the record", equal(facts, [json!("shell"), json!("sudo"), json!(PERSON), json!(digest)]));
    let output = server(&host, PERSON, &["diff", "shell"]);
    table.row("nothing differs", equal(output.stdout, "The tools of shell have not changed.\n".to_owned()));
    host.kill_engine();
    host.start_engine().await;
    table.row("the tool is called", ensure(may_call(&host.client().await).await, host.engine_log()));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_presence_only_root_accepts_changed_tools() {
    if !can_manage() {
        return;
    }
    let mut host = Host::managed(POLICY).await;
    change_tools(&mut host, "Runs every script.").await;
    let mut table = Table::new("changed tools that root accepts");
    let person = PERSON.to_string();
    let shown = server(&host, ROOT, &["diff", "shell", "--person", &person]);
    let digest = shown.stdout.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap_or("none");
    table.row("root sees them", ensure(shown.stdout.contains("Runs every script."), &shown));
    let refused = server(&host, PERSON, &["accept", "shell"]);
    let says = format!(
        "lockhouse: nothing was accepted: an administrator accepts them with sudo lockhouse server accept shell --person {person} \
         --digest {digest}\n"
    );
    table.row("the person", equal((refused.status, refused.stderr), (Some(2), says)));
    let stale = server(&host, ROOT, &["accept", "shell", "--person", &person, "--digest", "sha256:0"]);
    table.row("root with another digest", ensure(stale.status != Some(0), &stale));
    table.row("nothing is recorded", equal(record(&host), None));
    let accepted = server(&host, ROOT, &["accept", "shell", "--person", &person, "--digest", digest]);
    table.row("root", equal(accepted.stdout.clone(), "Accepted 1 tools of shell.\n".to_owned()));
    let recorded = record(&host).unwrap_or_default();
    let facts = ["presence", "uid"].map(|name| recorded[name].clone());
    table.row("the record", equal(facts, [json!("root"), json!(ROOT)]));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_accepts_the_tools_that_it_has_signed() {
    if !can_manage() {
        return;
    }
    let mut host = host_with("key", POLICY).await;
    change_tools(&mut host, "Runs every script.").await;
    let scene = KeyScene::new(host).await;
    let KeyScene { host, page, browser } = &scene;
    let mut table = Table::new("changed tools that the person accepts with a key");
    let key = Authenticator::new(&page.address, 1);
    let reply = browser.post("/api/keys/register", key.registration(&scene.code())).await;
    table.row("a key is registered", equal(reply.json(), json!({"registered": key.id()})));
    let shown = browser.post("/api/servers/review", json!({"server": "shell"})).await.json();
    let facts = ["server", "presence", "error"].map(|name| shown[name].clone());
    table.row("the page shows the server", equal(facts, [json!("shell"), json!("key"), Value::Null]));
    let change = [&shown["changes"][0]["tool"], &shown["changes"][0]["change"]].map(Clone::clone);
    table.row("and its change", equal(change, [json!("run"), json!("changed")]));
    let digest = shown["digest"].clone();
    let accept = async |proof: Value| {
        let body = json!({"server": "shell", "digest": digest, "proof": proof});
        let reply = browser.post("/api/servers/accept", body).await;
        reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    let challenge = async || {
        let body = json!({"server": "shell", "digest": digest});
        let reply = browser.post("/api/servers/challenge", body).await.json();
        reply["challenge"].as_str().unwrap_or_default().to_owned()
    };
    let refused = accept(Value::Null).await;
    table.row("no proof", ensure(refused.contains("needs a registered key"), refused));
    host.write("home/.config/lockhouse/policy.toml", "version = 1\n");
    host.give_to_person("home");
    let output = CommandOutput::run(&mut host.lockhouse_as(PERSON, &["policy", "propose"]), b"");
    let proposals = browser.post("/api/policy/proposals", json!({})).await.json();
    let body = json!({"supervisor": 0, "digest": proposals["proposals"][0]["digest"]});
    let of_policy = browser.post("/api/policy/challenge", body).await.json()["challenge"].clone();
    let refused = accept(key.sign(of_policy.as_str().unwrap_or_default())).await;
    table.row(
        "a challenge of a policy",
        ensure(refused.contains("something else"), format!("{refused} {output:?}")),
    );
    table.row("nothing is recorded", equal(record(host), None));
    let signed = key.sign(&challenge().await);
    let refused = accept(signed.clone()).await;
    table.row("control: the tools' own", equal(refused, String::new()));
    let recorded = record(host).unwrap_or_default();
    let facts = ["presence", "credential", "uid"].map(|name| recorded[name].clone());
    table.row("the record", equal(facts, [json!("key"), json!(key.id()), json!(PERSON)]));
    let refused = accept(signed).await;
    table.row("the same proof again", ensure(refused.contains("used already"), refused));
    table.finish();
}

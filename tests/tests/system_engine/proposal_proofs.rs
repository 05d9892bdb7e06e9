//! Tests of a proposed policy that the person accepts with a proof that they are there.

use std::os::unix::fs::PermissionsExt as _;

use data_encoding::HEXLOWER;
use lockhouse_tests::{CommandOutput, Table, ensure, equal};
use serde_json::{Value, json};

use super::authenticator::Authenticator;
use super::host::{Host, OTHER_PERSON, PERSON, can_manage};
use super::presence::{KeyScene, asking, host_with};
use super::proposals::{APPROVED, PROPOSED, digest, permitted, policy};

const ROOT: u32 = 0;
/// A policy as [`APPROVED`] is, but that asks about one call.
const ASKING: &str = "version = 1\n[servers.fixture]\nallow = [\"add\", \"env\"]\nask = [\"echo\"]\n";
/// What [`PROPOSED`] may permit beyond [`APPROVED`].
const CHANGES: &str = "1 changes: [servers.fixture] tool \"echo\": allow instead of nothing";
/// Stands for sudo: notes its arguments, and asks nobody.
pub(super) const SUDO: &str =
    "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done >\"$HOME/sudo-arguments\"\nexit 1\n";

/// Proposes a policy as the person. Returns the digest that the command shows.
fn propose(host: &Host, text: &str) -> String {
    host.write("home/.config/lockhouse/policy.toml", text);
    host.give_to_person("home");
    digest(&policy(host, PERSON, &["propose"]))
}

/// Runs the command that polkit and sudo run as root, with the variables that they set.
fn accept_policy(host: &Host, changes: &str, digest: &str, variables: &[(&str, u32)]) -> CommandOutput {
    let mut command = host.lockhouse_as(ROOT, &["accept-policy", changes, digest]);
    command.envs(variables.iter().map(|(name, uid)| (name, uid.to_string())));
    CommandOutput::run(&mut command, b"")
}

fn sha256(text: &str) -> String {
    HEXLOWER.encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()).as_ref())
}

/// Returns the record of the accepted policy.
fn record(host: &Host) -> Option<Value> {
    let is_acceptance = |record: &Value| record["event"] == "change" && record["target"] == "policy";
    host.records().into_iter().find(is_acceptance)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_accepts_the_policy_that_was_shown_and_no_other() {
    if !can_manage() {
        return;
    }
    let host = host_with("password", APPROVED).await;
    let client = host.client().await;
    let mut table = Table::new("a policy that the person accepts with a password");
    let short = propose(&host, PROPOSED);
    host.write("tools/sudo", SUDO);
    std::fs::set_permissions(host.path("tools/sudo"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut accept = host.lockhouse_as(PERSON, &["policy", "accept", &short]);
    accept.env("PATH", format!("{}:/usr/bin:/bin", host.path("tools").display()));
    let output = CommandOutput::run(&mut accept, b"");
    let says = "lockhouse: it was not approved\n";
    table.row("sudo refuses", ensure(output.status != Some(0) && output.stderr == says, &output));
    let arguments = std::fs::read_to_string(host.path("home/sudo-arguments")).unwrap_or_default();
    let digest = arguments.lines().last().unwrap_or_default().to_owned();
    table.row("with the complete digest", ensure(digest.len() == 64 && digest.starts_with(&short), &digest));
    let expected = format!("-k\n--\n/mnt/lockhouse\naccept-policy\n{CHANGES}\n{digest}\n");
    table.row("sudo was told what widens", equal(arguments, expected));
    table.row("nothing is permitted", equal(permitted(&client).await, json!([true, false, false])));

    let sudo = [("SUDO_UID", PERSON)];
    let mut refuse = |name: &str, (changes, digest): (&str, &str), variables: &[(&str, u32)], words: &str| {
        let output = accept_policy(&host, changes, digest, variables);
        table.row(name, ensure(output.status != Some(0) && output.stderr.contains(words), &output));
    };
    let right = (CHANGES, digest.as_str());
    refuse("root for nobody", right, &[], "says which person");
    refuse("root for root", right, &[("SUDO_UID", ROOT)], "says which person");
    refuse("two people", right, &[("SUDO_UID", PERSON), ("PKEXEC_UID", PERSON)], "two accounts");
    refuse("another person", right, &[("PKEXEC_UID", OTHER_PERSON)], "no engine of user");
    refuse("other changes", ("it permits nothing", &digest), &sudo, "not the policy that was shown");
    refuse("another digest", (CHANGES, &"0".repeat(64)), &sudo, "not the policy that was shown");
    let mut as_person = host.lockhouse_as(PERSON, &["accept-policy", CHANGES, &digest]);
    let output = CommandOutput::run(as_person.env("SUDO_UID", PERSON.to_string()), b"");
    table.row("the person in the place of root", ensure(output.stderr.contains("as root"), &output));
    table.row("nothing is permitted yet", equal(permitted(&client).await, json!([true, false, false])));
    table.row("nothing is recorded", equal(record(&host), None));

    let output = accept_policy(&host, CHANGES, &digest, &sudo);
    table.row("the person's password", ensure(output.status == Some(0), &output));
    table.row("it is in force", equal(permitted(&client).await, json!([true, false, true])));
    let recorded = record(&host).unwrap_or_default();
    let facts = ["action", "through", "presence", "uid", "digest"].map(|name| recorded[name].clone());
    let expected = [
        json!("accept the proposed policy"),
        json!("operator"),
        json!("sudo"),
        json!(PERSON),
        json!(sha256(PROPOSED)),
    ];
    table.row("the record names method and person", equal(facts, expected));
    let output = accept_policy(&host, CHANGES, &digest, &sudo);
    table.row("the same again", ensure(output.stderr.contains("not the policy"), &output));
    table.finish();
}

/// Accepts a policy on the page. Returns why it was refused, or an empty text.
async fn accept_on_page(scene: &KeyScene, digest: &str, proof: Value) -> String {
    let body = json!({"supervisor": 0, "digest": digest, "proof": proof});
    let reply = scene.browser.post("/api/policy/accept", body).await;
    reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

/// Returns what the page shows of proposed policies.
async fn shown(scene: &KeyScene) -> Value {
    scene.browser.post("/api/policy/proposals", json!({})).await.json()
}

async fn challenge(scene: &KeyScene, digest: &str) -> String {
    let body = json!({"supervisor": 0, "digest": digest});
    let reply = scene.browser.post("/api/policy/challenge", body).await.json();
    reply["challenge"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_accepts_exactly_the_policy_that_it_has_signed() {
    if !can_manage() {
        return;
    }
    let scene = KeyScene::new(host_with("key", ASKING).await).await;
    let KeyScene { host, page, browser } = &scene;
    let client = host.client().await;
    let mut table = Table::new("a policy that the person accepts with a key");
    let key = Authenticator::new(&page.address, 1);
    let reply = browser.post("/api/keys/register", key.registration(&scene.code())).await;
    table.row("a key is registered", equal(reply.json(), json!({"registered": key.id()})));
    propose(host, &PROPOSED.replace("add", "env"));
    let other = shown(&scene).await["proposals"][0]["digest"].as_str().unwrap_or_default().to_owned();
    let of_other = challenge(&scene, &other).await;
    let short = propose(host, ASKING_NO_MORE);
    let shown = shown(&scene).await;
    let digest = shown["proposals"][0]["digest"].as_str().unwrap_or_default().to_owned();
    table.row("its digest", ensure(digest.len() == 64 && digest.starts_with(&short), &digest));
    let expected = json!({"proposals": [{
        "supervisor": 0, "digest": digest, "presence": "key", "left_out": 0, "changes": [{
            "table": "servers.fixture", "entry": "tool \"echo\"", "approved": "ask", "proposed": "allow", "widens": true,
        }],
    }]});
    table.row("the page shows it", equal(shown, expected));
    let refused = policy(host, PERSON, &["accept", &digest[..16]]);
    let says = format!(
        "lockhouse: this command cannot accept it: you accept it with your key on the page (`lockhouse page`, Approvals, digest \
         {0}); or an administrator accepts it with sudo lockhouse policy accept {0}\n",
        &digest[..16]
    );
    table.row("the command", equal((refused.status, refused.stderr), (Some(2), says)));
    let refused = accept_on_page(&scene, &digest, Value::Null).await;
    table.row("no proof", ensure(refused.contains("needs a registered key"), refused));
    let refused = accept_on_page(&scene, &digest, key.sign(&of_other)).await;
    table.row("a challenge of another policy", ensure(refused.contains("something else"), refused));
    let elsewhere = Authenticator::new(&page.address, 1).at("localhost:1");
    let refused = accept_on_page(&scene, &digest, elsewhere.sign(&challenge(&scene, &digest).await)).await;
    table.row("a page at another port", ensure(refused.contains("another web page"), refused));
    let foreign = Authenticator::new(&page.address, 2);
    let refused = accept_on_page(&scene, &digest, foreign.sign(&challenge(&scene, &digest).await)).await;
    table.row("a key that is not registered", ensure(refused.contains("not registered"), refused));
    let reply = browser.post("/api/policy/challenge", json!({"supervisor": 0, "digest": other})).await;
    table.row("no challenge for a policy that is not proposed", ensure(reply.status == 409, &reply));

    let mut events = browser.events().await;
    events.until("approvals", |shown| shown["watching"] == 1).await;
    let answered = asking(&client, async || {
        let shown = events.until("approvals", |shown| shown["questions"][0]["id"].is_u64()).await;
        let question = &shown["questions"][0];
        let of_call =
            scene.challenge(question, "once").await["challenge"].as_str().unwrap_or_default().to_owned();
        let refused = accept_on_page(&scene, &digest, key.sign(&of_call)).await;
        table.row("a challenge of a call", ensure(refused.contains("something else"), refused));
        let of_policy = challenge(&scene, &digest).await;
        let refused = scene.approve(question, "once", key.sign(&of_policy)).await;
        table.row("a challenge of a policy for a call", ensure(refused.contains("something else"), refused));
        let of_call =
            scene.challenge(question, "once").await["challenge"].as_str().unwrap_or_default().to_owned();
        let refused = scene.approve(question, "once", key.sign(&of_call)).await;
        table.row("control: the call's own", equal(refused, String::new()));
    })
    .await;
    table.row("the call is made", equal(answered["value"].clone(), json!(7)));
    table.row("nothing is recorded", equal(record(host), None));

    let signed = key.sign(&challenge(&scene, &digest).await);
    let refused = accept_on_page(&scene, &digest, signed.clone()).await;
    table.row("control: the policy's own", equal(refused, String::new()));
    table.row("it is in force", equal(permitted(&client).await, json!([true, true, true])));
    let recorded = record(host).unwrap_or_default();
    let facts = ["through", "presence", "credential", "uid", "digest"].map(|name| recorded[name].clone());
    let expected =
        [json!("operator"), json!("key"), json!(key.id()), json!(PERSON), json!(sha256(ASKING_NO_MORE))];
    table.row("the record names method, key and person", equal(facts, expected));
    propose(host, ASKING);
    let digest = self::shown(&scene).await["proposals"][0]["digest"].as_str().unwrap_or_default().to_owned();
    let refused = accept_on_page(&scene, &digest, signed).await;
    table.row("the same proof again", ensure(refused.contains("used already"), refused));
    let signed = key.sign(&challenge(&scene, &digest).await);
    host.write("engine/config/lockhouse/policy.toml", ASKING);
    let refused = accept_on_page(&scene, &digest, signed).await;
    table.row(
        "root has changed the approved one",
        ensure(refused.contains("no proposal with this digest"), refused),
    );
    table.finish();
}

/// [`ASKING`], but without a question.
const ASKING_NO_MORE: &str = "version = 1\n[servers.fixture]\nallow = [\"add\", \"env\", \"echo\"]\n";

//! Tests of approvals that need a proof that a person is there.

use lockhouse_tests::{
    Approver, CommandOutput, Page, PageBrowser, Session, Table, ensure, equal, structured,
};
use serde_json::{Value, json};

use super::authenticator::Authenticator;
use super::host::{Host, OTHER_PERSON, PERSON, can_manage};

const POLICY: &str = "version = 1\n[servers.fixture]\nask = [\"echo\"]\n";
const CALL: &str = "from fixture import echo\necho(value=7)['value']";
const ROOT: u32 = 0;

async fn host(level: &str) -> Host {
    host_with(level, POLICY).await
}

/// Returns a host whose requirements ask for this proof.
pub(super) async fn host_with(level: &str, policy: &str) -> Host {
    Host::managed_with(policy, &format!("[approvals]\npresence = \"{level}\"\nwait_seconds = 60\n")).await
}

/// Runs a program whose call is to be approved. `answer` answers, and the program ends then.
pub(super) async fn asking(client: &Session, answer: impl AsyncFnOnce()) -> Value {
    asking_for(client, CALL, answer).await
}

async fn asking_for(client: &Session, code: &str, answer: impl AsyncFnOnce()) -> Value {
    let running = client.start_code("python", code);
    answer().await;
    structured(running.await.unwrap())
}

fn reason(message: &Value) -> String {
    message["refused"]["reason"].as_str().unwrap_or_default().to_owned()
}

/// The arguments of `lockhouse approve` for a question.
struct Approved<'a> {
    calls: &'a str,
    question: &'a Value,
    digest: Value,
}

impl Approved<'_> {
    /// Runs the command as root, with the variables that polkit and sudo set.
    fn run(&self, host: &Host, variables: &[(&str, u32)]) -> CommandOutput {
        let (id, digest) = (self.question["ask"]["id"].to_string(), self.digest.as_str().unwrap());
        let mut command = host.lockhouse_as(ROOT, &["approve", self.calls, "once", "0", &id, digest]);
        for (name, uid) in variables {
            command.env(name, uid.to_string());
        }
        CommandOutput::run(&mut command, b"")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_approves_what_was_shown_and_nothing_else_does() {
    if !can_manage() {
        return;
    }
    let host = host("password").await;
    let client = host.client().await;
    let mut table = Table::new("approvals that need a password");
    let mut person = Approver::spawn(host.lockhouse_as(PERSON, &["approvals", "--json"]));
    person.next("watching").await;
    let answered = asking(&client, async || {
        let question = person.next("ask").await;
        table.row(
            "the person sees the question",
            ensure(question["ask"]["presence"] == "password", &question),
        );
        person.answer(&question, "approve", "once").await;
        let refused = reason(&person.next("refused").await);
        table.row("the person alone", ensure(refused.contains("needs a password"), refused));
        let mut answer = json!({"supervisor": question["supervisor"], "answer": {
            "id": question["ask"]["id"], "digest": question["ask"]["digest"], "decision": "approve",
            "proof": {"password": {"method": "sudo", "uid": PERSON}},
        }});
        person.send_line(&answer).await;
        let refused = reason(&person.next("refused").await);
        table.row("a statement of the person", ensure(refused.contains("only a process of root"), refused));
        answer["answer"]["proof"] = json!({"key": {
            "credential": "AA", "client_data": "AA", "authenticator_data": "AA", "signature": "AA",
        }});
        person.send_line(&answer).await;
        let refused = reason(&person.next("refused").await);
        table.row("a key that is none", ensure(refused.contains("malformed"), refused));

        let digest = question["ask"]["digest"].clone();
        let right = || Approved {
            calls: "fixture.echo { \"value\": 7 }",
            question: &question,
            digest: digest.clone(),
        };
        let sudo = [("SUDO_UID", PERSON)];
        let mut refuse = |name: &str, approved: Approved<'_>, variables: &[(&str, u32)], words: &str| {
            let output = approved.run(&host, variables);
            let is_refused = output.status != Some(0) && output.stderr.contains(words);
            table.row(name, ensure(is_refused, &output));
        };
        refuse("root for nobody", right(), &[], "says which person");
        refuse("root for root", right(), &[("SUDO_UID", ROOT)], "says which person");
        refuse("two people", right(), &[("SUDO_UID", PERSON), ("PKEXEC_UID", PERSON)], "two accounts");
        refuse(
            "the password of another person",
            right(),
            &[("PKEXEC_UID", OTHER_PERSON)],
            "no engine of user",
        );
        let other = Approved { calls: "fixture.echo { \"value\": 8 }", ..right() };
        refuse("another text", other, &sudo, "not the question that was shown");
        refuse("another digest", Approved { digest: json!("0"), ..right() }, &sudo, "not the question");
        let mut as_person = host.lockhouse_as(PERSON, &["approve", right().calls, "once", "0", "1", "0"]);
        let output = CommandOutput::run(as_person.env("SUDO_UID", PERSON.to_string()), b"");
        table.row("the person in the place of root", ensure(output.stderr.contains("as root"), &output));
        let output = right().run(&host, &sudo);
        table.row("the person's password", ensure(output.status == Some(0), &output));
        let output = right().run(&host, &sudo);
        table.row("the same again", ensure(output.stderr.contains("no engine of user"), &output));
    })
    .await;
    table.row(
        "the call is made",
        equal(answered["value"].clone(), json!(7)).map_err(|why| format!("{why} {answered}")),
    );

    let answered = asking(&client, async || {
        let question = person.next("ask").await;
        let mut root = Approver::spawn(host.lockhouse_as(ROOT, &["approvals", "--json"]));
        let question_of_root = root.next("ask").await;
        table.row(
            "root sees it",
            equal(question_of_root["ask"]["digest"].clone(), question["ask"]["digest"].clone()),
        );
        root.answer(&question_of_root, "approve", "once").await;
        root.next("taken").await;
    })
    .await;
    table.row("root approves as root", equal(answered["value"].clone(), json!(7)));
    let answered = asking(&client, async || {
        let question = person.next("ask").await;
        person.answer(&question, "decline", "once").await;
        person.next("taken").await;
    })
    .await;
    let is_declined = answered.to_string().contains("approval_declined");
    table.row("the person declines without a password", ensure(is_declined, &answered));

    let approved = |method: &str, uid: u32| {
        let records = host.records();
        let found = records.iter().any(|record| {
            record["event"] == "approval"
                && record["outcome"] == "once"
                && record["presence"] == method
                && record["uid"] == uid
        });
        ensure(found, records)
    };
    table.row("the record of the password", approved("sudo", PERSON));
    table.row("the record of root", approved("root", ROOT));
    table.finish();
}

/// A policy whose rules require more the larger the value is.
const RULES: &str = r#"version = 1
[servers.fixture]
[[servers.fixture.rules]]
tool = "echo"
effect = "ask"
[[servers.fixture.rules]]
tool = "echo"
when = { value = { min = 10 } }
effect = "ask"
presence = "password"
[[servers.fixture.rules]]
tool = "echo"
when = { value = { min = 100 } }
effect = "ask"
presence = "key"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_the_policy_raises_what_an_approval_must_prove() {
    if !can_manage() {
        return;
    }
    let host = host_with("none", RULES).await;
    let client = host.client().await;
    let mut table = Table::new("rules with `presence`, on a host whose requirements ask for no proof");
    let mut person = Approver::spawn(host.lockhouse_as(PERSON, &["approvals", "--json"]));
    person.next("watching").await;
    let mut root = Approver::spawn(host.lockhouse_as(ROOT, &["approvals", "--json"]));
    root.next("watching").await;
    let code = "from fixture import echo\n[echo(value=number)['value'] for number in (7, 8, 10)]";
    let answered = asking_for(&client, code, async || {
        let (question, of_root) = (person.next("ask").await, root.next("ask").await);
        table.row("a rule without `presence`", equal(question["ask"]["presence"].clone(), Value::Null));
        person.answer(&question, "approve", "execution").await;
        let refused = reason(&person.next("refused").await);
        table.row("is root's alone", ensure(refused.contains("only root approves this"), refused));
        root.answer(&of_root, "approve", "execution").await;
        root.next("taken").await;
        let (question, of_root) = (person.next("ask").await, root.next("ask").await);
        let shown = json!([question["ask"]["presence"], question["ask"]["calls"][0]["arguments"]]);
        // The approval for the run covers 8, and not 10.
        table.row(
            "a rule with a password asks again",
            equal(shown, json!(["password", "{\n  \"value\": 10\n}"])),
        );
        person.answer(&question, "approve", "once").await;
        let refused = reason(&person.next("refused").await);
        table.row("the person alone", ensure(refused.contains("needs a password"), refused));
        let digest = question["ask"]["digest"].clone();
        let approved = Approved { calls: "fixture.echo { \"value\": 10 }", question: &question, digest };
        let output = approved.run(&host, &[("SUDO_UID", PERSON)]);
        table.row("the person's password", ensure(output.status == Some(0), &output));
        root.next("gone").await;
        drop(of_root);
    })
    .await;
    table.row("the calls are made", equal(answered["value"].clone(), json!([7, 8, 10])));
    let answered = asking_for(&client, "from fixture import echo\necho(value=100)", async || {
        let (question, of_root) = (person.next("ask").await, root.next("ask").await);
        table.row("a rule with a key", equal(question["ask"]["presence"].clone(), "key".into()));
        root.answer(&of_root, "approve", "once").await;
        let refused = reason(&root.next("refused").await);
        table.row("root without a key", ensure(refused.contains("needs a registered key"), refused));
        person.answer(&question, "decline", "once").await;
        person.next("taken").await;
    })
    .await;
    let is_declined = answered.to_string().contains("approval_declined");
    table.row("the person declines it", ensure(is_declined, &answered));
    let mut explain =
        host.lockhouse_as(PERSON, &["policy", "explain", "fixture.echo", "--args", "{\"value\": 100}"]);
    host.write("home/.config/lockhouse/policy.toml", RULES);
    host.give_to_person("home");
    let output = CommandOutput::run(&mut explain, b"");
    let says = "fixture.echo requires approval with a key: the rule for \"echo\"";
    table.row("`policy explain` says so", ensure(output.stdout.starts_with(says), &output));
    table.finish();
}

/// The page of the person, in a browser with a key.
pub(super) struct KeyScene {
    pub(super) host: Host,
    pub(super) page: Page,
    pub(super) browser: PageBrowser,
}

impl KeyScene {
    pub(super) async fn new(host: Host) -> Self {
        let page = Page::spawn(host.lockhouse_as(PERSON, &["page", "--no-open"])).await;
        let browser = page.browser().await;
        Self { host, page, browser }
    }

    /// Returns a code for the registration of a key.
    pub(super) fn code(&self) -> String {
        let person = PERSON.to_string();
        let mut enroll = self.host.lockhouse_as(ROOT, &["approvals", "enroll", "--person", &person]);
        CommandOutput::run(&mut enroll, b"").stdout.trim().to_owned()
    }

    pub(super) async fn challenge(&self, question: &Value, scope: &str) -> Value {
        let body = json!({
            "supervisor": question["supervisor"], "id": question["id"], "digest": question["digest"], "scope": scope,
        });
        let reply = self.browser.post("/api/approvals/challenge", body).await;
        reply.json()
    }

    /// Approves a question. Returns why it was refused, or an empty text.
    pub(super) async fn approve(&self, question: &Value, scope: &str, proof: Value) -> String {
        let body = json!({
            "supervisor": question["supervisor"], "id": question["id"], "digest": question["digest"],
            "decision": "approve", "scope": scope, "proof": proof,
        });
        let reply = self.browser.post("/api/approvals/answer", body).await;
        reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_approves_exactly_the_answer_that_it_has_signed() {
    if !can_manage() {
        return;
    }
    let scene = KeyScene::new(host("key").await).await;
    let KeyScene { host, page, browser } = &scene;
    let client = host.client().await;
    let mut table = Table::new("approvals that need a key");
    let mut as_person = host.lockhouse_as(PERSON, &["approvals", "enroll"]);
    let output = CommandOutput::run(&mut as_person, b"");
    table.row("the person gets no code", ensure(output.stderr.contains("needs root"), &output));
    let key = Authenticator::new(&page.address, 1);
    let register = async |key: &Authenticator, code: &str| {
        browser.post("/api/keys/register", key.registration(code)).await
    };
    let reply = register(&key, "AAAAAAAAAAAAAAAA").await;
    table.row("a wrong code", ensure(reply.status == 409, &reply));
    let code = scene.code();
    let reply = register(&key, &code).await;
    table.row("the code registers a key", equal(reply.json(), json!({"registered": key.id()})));
    let foreign = Authenticator::new(&page.address, 2);
    let reply = register(&foreign, &code).await;
    table.row("the same code again", ensure(reply.status == 409, &reply));

    let mut events = browser.events().await;
    events.until("approvals", |shown| shown["watching"] == 1).await;
    let answered = asking(&client, async || {
        let shown = events.until("approvals", |shown| shown["questions"][0]["id"].is_u64()).await;
        let question = &shown["questions"][0];
        table.row("the page knows that it needs a key", equal(question["presence"].clone(), "key".into()));
        let refused = scene.approve(question, "once", Value::Null).await;
        table.row("no proof", ensure(refused.contains("needs a registered key"), refused));
        let challenge = scene.challenge(question, "once").await;
        table.row("the key may sign", equal(challenge["credentials"].clone(), json!([key.id()])));
        let text = challenge["challenge"].as_str().unwrap_or_default().to_owned();
        let refused = scene.approve(question, "execution", key.sign(&text)).await;
        table.row("another scope", ensure(refused.contains("another scope"), refused));
        let refused = scene.approve(question, "once", key.sign(&text)).await;
        table.row("the challenge is used up", ensure(refused.contains("used already"), refused));
        let text = async || {
            scene.challenge(question, "once").await["challenge"].as_str().unwrap_or_default().to_owned()
        };
        let refused = scene.approve(question, "once", foreign.sign(&text().await)).await;
        table.row("a key that is not registered", ensure(refused.contains("not registered"), refused));
        let elsewhere = Authenticator::new(&page.address, 1).at("localhost:1");
        let refused = scene.approve(question, "once", elsewhere.sign(&text().await)).await;
        table.row("a page at another port", ensure(refused.contains("another web page"), refused));
        let mut root = Approver::spawn(host.lockhouse_as(ROOT, &["approvals", "--json"]));
        let question_of_root = root.next("ask").await;
        root.answer(&question_of_root, "approve", "once").await;
        let refused = reason(&root.next("refused").await);
        table.row("root without a key", ensure(refused.contains("needs a registered key"), refused));
        let refused = scene.approve(question, "once", key.sign(&text().await)).await;
        table.row("control: the key", equal(refused, String::new()));
    })
    .await;
    table.row(
        "the call is made",
        equal(answered["value"].clone(), json!(7)).map_err(|why| format!("{why} {answered}")),
    );
    let records = host.records();
    let is_of_key =
        |record: &&Value| record["presence"] == "key" && record["credential"] == key.id().as_str();
    table.row("the record names the key", ensure(records.iter().any(|record| is_of_key(&record)), &records));
    let is_registration = |record: &Value| record["event"] == "change" && record["target"] == "keys";
    let changes = records.iter().filter(|record| is_registration(record)).count();
    table.row("the code and the registration are recorded", equal(changes, 2));
    let person = PERSON.to_string();
    let mut remove = host.lockhouse_as(ROOT, &["approvals", "remove-key", &key.id(), "--person", &person]);
    let output = CommandOutput::run(&mut remove, b"");
    table.row("root removes the key", ensure(output.status == Some(0), &output));
    let mut list = host.lockhouse_as(ROOT, &["approvals", "keys", "--person", &person]);
    let output = CommandOutput::run(&mut list, b"");
    table.row("it is removed", ensure(output.stdout.contains("No key"), &output));
    table.finish();
}

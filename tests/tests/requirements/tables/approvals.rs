//! Attempts to approve calls in another manner than the requirements permit, or to be asked about none.

use std::time::Duration;

use lockhouse_tests::{Approver, ClientUser, Session, UserReply};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::Row;
use crate::requirements::attempts::{Host, boxed};
use crate::requirements::{ADD, ALLOW, server};

const LOCAL: &str = "[approvals]\nthrough = \"local\"\n";
const PASSWORD: &str = "[approvals]\npresence = \"password\"\n";
const NO_PRESENCE: &str = "[approvals]\npresence = \"none\"\n";
const SHORT: &str = "[approvals]\nwait_seconds = 0.3\n";
const ASKS: &str = "policy = \"ROOT/etc/lockhouse/asks.toml\"\n";
const DENIES: &str = "policy = \"ROOT/etc/lockhouse/policy.toml\"\n";
const OWN_ASKS: &str = "version = 1\n[servers.fixture]\nask = [\"add\"]\n";
const ANY: &str = "[approvals]\nthrough = \"any\"\n";
/// Longer than the time for an answer of [`SHORT`].
const AFTER_SHORT: Duration = Duration::from_millis(1_500);

/// Returns whether the AI client can approve a call.
async fn approved_by_client(it: &Host, options: &[&str], requirements: Option<&str>) -> (bool, String) {
    it.policy(OWN_ASKS);
    let variable =
        requirements.map(|text| ("LOCKHOUSE_REQUIREMENTS", it.lockhouse.file("own-required.toml", text)));
    let command = it.command(&[&["serve"], options].concat(), variable.as_slice());
    let user = ClientUser::replying(UserReply::Accept(json!({"scope": "once"})));
    let session = Session::connect_as(user, command, Session::latest()).await;
    let answer = session.run_asking(ADD).await;
    session.close().await;
    (answer["value"] == 42, answer.to_string())
}

/// Runs a program while somebody approves each question that arrives, and returns its answer.
async fn run_approved(session: &Session, approver: &mut Approver, scope: &str) -> Value {
    let mut running = session.start_code("python", ADD);
    loop {
        tokio::select! {
            answer = &mut running => return lockhouse_tests::structured(answer.unwrap()),
            question = approver.next("ask") => {
                approver.answer(&question, "approve", scope).await;
                // The scope may not be offered.
                approver.answer(&question, "approve", "once").await;
            }
        }
    }
}

/// Returns whether an approval counts that arrives after the time that the requirements permit.
async fn approved_late(it: &Host, options: &[&str]) -> (bool, String) {
    it.policy(OWN_ASKS);
    let session = it.serve(options, &[]).await;
    let mut approver = Approver::connected(&it.lockhouse).await;
    let running = session.start_code("python", ADD);
    let question = approver.next("ask").await;
    // Without requirements, the question stays.
    let _ = timeout(AFTER_SHORT, approver.next("gone")).await;
    approver.answer(&question, "approve", "once").await;
    let answer = lockhouse_tests::structured(running.await.unwrap());
    (answer["value"] == 42, answer.to_string())
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("approvals", "through the AI client", LOCAL, |it| {
            boxed(async {
                it.config(&format!("{ANY}{}", server("fixture")));
                approved_by_client(it, &[], None).await
            })
        }),
        ("approvals", "through the AI client, with --config", LOCAL, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", format!("{ANY}{}", server("fixture")));
                approved_by_client(it, &["--config", &path.display().to_string()], None).await
            })
        }),
        ("approvals", "through the AI client, in a further requirements file", LOCAL, |it| {
            boxed(async { approved_by_client(it, &[], Some(ANY)).await })
        }),
        ("approvals", "without a proof of presence", PASSWORD, |it| {
            boxed(async {
                it.config(&format!("{NO_PRESENCE}{}", server("fixture")));
                approved_by_client(it, &[], Some(NO_PRESENCE)).await
            })
        }),
        ("approvals", "a longer time for the answer", SHORT, |it| {
            boxed(async {
                it.config(&format!("[approvals]\nwait_seconds = 300\n{}", server("fixture")));
                approved_late(it, &[]).await
            })
        }),
        ("approvals", "a longer time for questions", SHORT, |it| {
            boxed(async {
                let path = it
                    .lockhouse
                    .file("own.toml", format!("[limits]\nquestion_seconds = 600\n{}", server("fixture")));
                approved_late(it, &["--config", &path.display().to_string()]).await
            })
        }),
        ("approvals", "the own policy allows it without asking", ASKS, |it| {
            boxed(async { it.returns(ADD, json!(42), &[], &[]).await })
        }),
        ("approvals", "--policy allows it without asking", ASKS, |it| {
            boxed(async {
                let path = it.lockhouse.file("own.toml", ALLOW).display().to_string();
                it.returns(ADD, json!(42), &["--policy", &path], &[]).await
            })
        }),
        ("approvals", "an approval for always", ASKS, |it| {
            boxed(async {
                it.policy(OWN_ASKS);
                let session = it.serve(&[], &[]).await;
                let mut approver = Approver::connected(&it.lockhouse).await;
                let first = run_approved(&session, &mut approver, "always").await;
                assert_eq!(first["value"], 42, "the approved call: {first}");
                drop(approver);
                session.close().await;
                it.returns(ADD, json!(42), &[], &[]).await
            })
        }),
        ("approvals", "an approval of what the required policy denies", DENIES, |it| {
            boxed(async {
                it.policy(OWN_ASKS);
                let session = it.serve(&[], &[]).await;
                let mut approver = Approver::connected(&it.lockhouse).await;
                let answer = run_approved(&session, &mut approver, "once").await;
                (answer["value"] == 42, answer.to_string())
            })
        }),
    ]
}

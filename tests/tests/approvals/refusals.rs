//! Tests that Lockhouse stops asking approvers after several questions in a row were refused: the approver declined, or
//! the program ended before an answer.

use lockhouse_tests::{Approver, ClientUser, Session, Table, UserReply, ensure, equal, wait_until};
use rmcp::model::{ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::approvals::{ONE, eras, lockhouse, outcomes, parameters, repeated_sequence, session};

/// A Python program that makes a hundred calls, whatever the approver answers. It returns the number of approved calls
/// and the last error message.
const REPEATED_CALLS: &str = "\
from mcp_tools import fixture, ToolError
made, told = 0, ''
for i in range(100):
  try: made += fixture.echo(value=i)['value'] == i
  except ToolError as e: told = str(e)
[made, told]
";

#[tokio::test]
async fn a_hundred_refused_calls_ask_three_questions_and_a_second_run_asks_none() {
    let mut table = Table::new("a program that repeats a refused call");
    for (era, mode) in eras() {
        let lockhouse = lockhouse("");
        let person = ClientUser::replying(UserReply::Decline);
        let ai_client = session(&lockhouse, &person, mode).await;
        let answer = ai_client.run_asking(REPEATED_CALLS).await;
        let reported = answer["value"][1].as_str().unwrap_or_default();
        table.row(format!("{era}: nothing was done"), equal(&answer["value"][0], &json!(0)));
        table.row(format!("{era}: questions"), equal(person.received_requests().len(), 3));
        let says = reported.contains("nobody was asked") && reported.contains("Do not try again");
        table.row(format!("{era}: the error message for the program"), ensure(says, &answer));
        let again = ai_client.run_asking(REPEATED_CALLS).await;
        let reported = again["value"][1].as_str().unwrap_or_default();
        table.row(format!("{era}: the program again"), equal(person.received_requests().len(), 3));
        let says =
            reported.contains("the last 3 questions in a row were refused") && reported.contains("for ");
        table.row(format!("{era}: the error message in the second run"), ensure(says, &again));
        let recorded = outcomes(&lockhouse);
        let unasked = recorded.iter().filter(|outcome| *outcome == "too many refusals").count();
        table.row(format!("{era}: each is recorded"), equal((recorded.len(), unasked), (6 + 197, 197)));
    }
    table.finish();
}

#[tokio::test]
async fn an_approval_resets_the_count_of_refusals() {
    let lockhouse = lockhouse("");
    let says = repeated_sequence(&[UserReply::Decline, UserReply::Decline, UserReply::AcceptEmpty], 4);
    let person = ClientUser::replying(says);
    let session = session(&lockhouse, &person, Session::latest()).await;
    let answer = session.run_asking(&REPEATED_CALLS.replace("100", "12")).await;
    assert_eq!(answer["value"][0], 4, "{answer}");
    assert_eq!(person.received_requests().len(), 12);
}

#[tokio::test]
async fn after_three_refusals_a_tool_is_not_asked_about_again_despite_other_approvals() {
    let lockhouse = lockhouse("");
    // Three times in turn: one tool is declined, and the other one approved.
    let says = repeated_sequence(&[UserReply::Decline, UserReply::AcceptEmpty], 6);
    let person = ClientUser::replying(says);
    let session = session(&lockhouse, &person, Session::latest()).await;
    let code = "\
from mcp_tools import fixture, ToolError
reported = []
for i in range(5):
  try: fixture.echo(value=i)
  except ToolError as e: reported.append(str(e))
  try: fixture.add(a=i, b=1)
  except ToolError as e: reported.append('add: ' + str(e))
reported
";
    let answer = session.run_asking(code).await;
    let messages: Vec<&str> =
        answer["value"].as_array().unwrap().iter().filter_map(|message| message.as_str()).collect();
    assert!(messages[..3].iter().all(|message| message.contains("was declined at once")), "{answer}");
    assert!(messages[3].contains("were refused 3 times in a row in this execution"), "{answer}");
    // Three questions about each tool, and from then on only about the other tool, which the user declines and
    // approves in turn.
    assert!(person.received_requests().len() == 8, "{answer}");
}

/// A Python program that makes a call in a background thread and waits at most 1 s for the call. If Lockhouse does not
/// ask, the call fails and the program ends at once. If Lockhouse asks, the program ends while the question is pending.
const ABANDONED_CALL: &str = "\
import threading
from mcp_tools import fixture, ToolError
def ask():
  try: fixture.add(a=1, b=2)
  except ToolError: pass
asking = threading.Thread(target=ask, daemon=True)
asking.start()
asking.join(1)
1
";

#[tokio::test]
async fn abandoned_questions_of_ended_programs_count_as_refusals() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let _approver = Approver::connected(&lockhouse).await;
    for _ in 0..8 {
        let answer = session.run_code("python", ABANDONED_CALL).await;
        assert_eq!(answer["value"], 1, "{answer}");
    }
    let outcomes = outcomes(&lockhouse);
    let asked = outcomes.iter().filter(|outcome| *outcome == "asked through local").count();
    let unasked = outcomes.iter().filter(|outcome| *outcome == "too many refusals").count();
    assert!(matches!(asked, 3 | 4) && asked + unasked == 8, "{outcomes:?}");
}

#[tokio::test]
async fn questions_of_externally_stopped_runs_do_not_count_as_refusals() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    for _ in 0..5 {
        let running = session.start_code("python", ONE);
        approver.next("ask").await;
        let ended = lockhouse.run(&["runs", "end", "--all"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let answer = lockhouse_tests::structured(running.await.unwrap());
        assert_eq!(answer["status"], "cancelled", "{answer}");
    }
}

#[tokio::test]
async fn questions_of_runs_cancelled_by_their_client_count_as_refusals() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    for _ in 0..3 {
        let request = ClientRequest::CallToolRequest(Request::new(parameters(ONE)));
        let options = PeerRequestOptions::no_options();
        let running = session.peer().send_cancellable_request(request, options).await.unwrap();
        approver.next("ask").await;
        running.cancel(None).await.unwrap();
        approver.next("gone").await;
    }
    let answer = session.run_code("python", ONE).await;
    let reported = answer["value"][0][1].as_str().unwrap_or_default();
    assert!(reported.contains("the last 3 questions in a row were refused"), "{answer}");
}

#[tokio::test]
async fn concurrent_runs_share_the_limit_of_consecutive_refusals() {
    let config = "[approvals]\nthrough = \"local\"\nwait_seconds = 10\n[pool]\nidle = 1\nrunning = 6\n";
    let lockhouse = lockhouse(config);
    let session = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let runs: Vec<_> = (0..6).map(|_| session.start_code("python", ONE)).collect();
    wait_until("all runs wait for an approval", async || {
        let listed = lockhouse.run(&["runs", "list", "--json"]).json();
        let waits = |run: &&serde_json::Value| run["waiting_for"] == "approval of fixture.add";
        (listed.as_array()?.iter().filter(waits).count() == runs.len()).then_some(())
    })
    .await;
    for _ in 0..3 {
        let question = approver.next("ask").await;
        approver.answer(&question, "decline", "once").await;
    }
    for run in runs {
        let answer = lockhouse_tests::structured(run.await.unwrap());
        assert_eq!(answer["value"][0][0], "approval_declined", "{answer}");
    }
    let outcomes = outcomes(&lockhouse);
    let of = |what: &str| outcomes.iter().filter(|outcome| *outcome == what).count();
    let counted = (of("asked through local"), of("declined through local"), of("too many refusals"));
    assert_eq!(counted, (3, 3, 3), "{outcomes:?}");
}

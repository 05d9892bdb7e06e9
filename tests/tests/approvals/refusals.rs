//! People who have said no are not asked again and again.

use lockhouse_tests::{Approver, Person, Says, Session, Table, ensure, equal, wait_until};
use rmcp::model::{ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use crate::{ONE, eras, in_turn, lockhouse, outcomes, parameters, session};

/// Asks a hundred times, whatever it is told: how often it was let, and what it was told at last.
const INSISTS: &str = "\
from mcp_tools import fixture, ToolError
made, told = 0, ''
for i in range(100):
  try: made += fixture.echo(value=i)['value'] == i
  except ToolError as e: told = str(e)
[made, told]
";

#[tokio::test]
async fn a_hundred_refused_calls_are_three_questions_and_running_the_program_again_asks_nobody() {
    let mut table = Table::new("a program that insists");
    for (era, mode) in eras() {
        let lockhouse = lockhouse("");
        let person = Person::who_says(Says::No);
        let asked = session(&lockhouse, &person, mode).await;
        let answer = asked.run_asking(INSISTS).await;
        let told = answer["value"][1].as_str().unwrap_or_default();
        table.row(format!("{era}: nothing was done"), equal(&answer["value"][0], &json!(0)));
        table.row(format!("{era}: questions"), equal(person.asked().len(), 3));
        let says = told.contains("nobody was asked") && told.contains("Do not try again");
        table.row(format!("{era}: what the program is told"), ensure(says, &answer));
        let again = asked.run_asking(INSISTS).await;
        let told = again["value"][1].as_str().unwrap_or_default();
        table.row(format!("{era}: the program again"), equal(person.asked().len(), 3));
        let says = told.contains("the last 3 questions in a row were refused") && told.contains("for ");
        table.row(format!("{era}: what it is told then"), ensure(says, &again));
        let recorded = outcomes(&lockhouse);
        let unasked = recorded.iter().filter(|outcome| *outcome == "too many refusals").count();
        table.row(format!("{era}: each is recorded"), equal((recorded.len(), unasked), (6 + 197, 197)));
    }
    table.finish();
}

#[tokio::test]
async fn an_approval_ends_the_count_of_refusals() {
    let lockhouse = lockhouse("");
    let says = in_turn(&[Says::No, Says::No, Says::Bare], 4);
    let person = Person::who_says(says);
    let session = session(&lockhouse, &person, Session::latest()).await;
    let answer = session.run_asking(&INSISTS.replace("100", "12")).await;
    assert_eq!(answer["value"][0], 4, "{answer}");
    assert_eq!(person.asked().len(), 12);
}

#[tokio::test]
async fn a_tool_that_was_refused_three_times_is_not_asked_about_again_whatever_else_is_approved() {
    let lockhouse = lockhouse("");
    // Three times in turn: no to one tool, yes to the other.
    let says = in_turn(&[Says::No, Says::Bare], 6);
    let person = Person::who_says(says);
    let session = session(&lockhouse, &person, Session::latest()).await;
    let code = "\
from mcp_tools import fixture, ToolError
told = []
for i in range(5):
  try: fixture.echo(value=i)
  except ToolError as e: told.append(str(e))
  try: fixture.add(a=i, b=1)
  except ToolError as e: told.append('add: ' + str(e))
told
";
    let answer = session.run_asking(code).await;
    let told: Vec<&str> =
        answer["value"].as_array().unwrap().iter().filter_map(|told| told.as_str()).collect();
    assert!(told[..3].iter().all(|told| told.contains("declined it")), "{answer}");
    assert!(told[3].contains("were refused 3 times in a row in this execution"), "{answer}");
    // Three of each, and from then on of the other tool alone, to which the person says no and yes in turn.
    assert!(person.asked().len() == 8, "{answer}");
}

/// Asks in a thread and ends: at once where the call is refused, and with the question open where a person is asked.
const LEAVES: &str = "\
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
async fn a_program_that_asks_and_ends_is_run_again_without_asking_anybody() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let _approver = Approver::watching(&lockhouse).await;
    for _ in 0..8 {
        let answer = session.run_code("python", LEAVES).await;
        assert_eq!(answer["value"], 1, "{answer}");
    }
    let outcomes = outcomes(&lockhouse);
    let asked = outcomes.iter().filter(|outcome| *outcome == "asked through local").count();
    let unasked = outcomes.iter().filter(|outcome| *outcome == "too many refusals").count();
    assert!(matches!(asked, 3 | 4) && asked + unasked == 8, "{outcomes:?}");
}

#[tokio::test]
async fn runs_that_somebody_else_ends_count_as_no_refusals() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
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
async fn a_client_that_asks_and_cancels_its_runs_is_not_let_ask_again() {
    let lockhouse = lockhouse("[approvals]\nthrough = \"local\"\n");
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    for _ in 0..3 {
        let request = ClientRequest::CallToolRequest(Request::new(parameters(ONE)));
        let options = PeerRequestOptions::no_options();
        let running = session.peer().send_cancellable_request(request, options).await.unwrap();
        approver.next("ask").await;
        running.cancel(None).await.unwrap();
        approver.next("gone").await;
    }
    let answer = session.run_code("python", ONE).await;
    let told = answer["value"][0][1].as_str().unwrap_or_default();
    assert!(told.contains("the last 3 questions in a row were refused"), "{answer}");
}

#[tokio::test]
async fn runs_at_the_same_time_ask_together_no_more_than_one_after_the_other() {
    let config = "[approvals]\nthrough = \"local\"\nwait_seconds = 10\n[pool]\nidle = 1\nrunning = 6\n";
    let lockhouse = lockhouse(config);
    let session = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    let runs: Vec<_> = (0..6).map(|_| session.start_code("python", ONE)).collect();
    wait_until("all runs wait for a person", async || {
        let listed = lockhouse.run(&["runs", "list", "--json"]).json();
        let waits = |run: &&serde_json::Value| run["waiting_for"] == "approval of fixture.add";
        (listed.as_array()?.iter().filter(waits).count() == runs.len()).then_some(())
    })
    .await;
    for _ in 0..3 {
        let asked = approver.next("ask").await;
        approver.answer(&asked, "decline", "once").await;
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

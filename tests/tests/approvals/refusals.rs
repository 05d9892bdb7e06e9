//! People who have said no are not asked again and again.

use lockhouse_tests::{Person, Says, Session, Table, ensure, equal};
use serde_json::json;

use crate::{eras, in_turn, lockhouse, outcomes, session};

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

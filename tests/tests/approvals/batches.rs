//! Calls that come together are one question, and its answer is for exactly them.

use std::collections::BTreeSet;

use lockhouse_tests::{Approver, Person, Says, Session, Table, ensure, equal};
use serde_json::{Value, json};

use crate::{eras, lockhouse, outcomes, records, session};

/// 64 calls at one time.
const PARALLEL: [(&str, &str); 2] = [
    (
        "python",
        "import asyncio\nfrom mcp_tools.aio import fixture\nfrom mcp_tools import ToolError\n\
         async def one(i):\n  try: return (await fixture.add(a=i, b=1000))['sum']\n  except ToolError as e: return e.code\n\
         r = await asyncio.gather(*[one(i) for i in range(64)])\n[r, (await fixture.count()).get('add', 0)]",
    ),
    (
        "python",
        "from concurrent.futures import ThreadPoolExecutor\nfrom mcp_tools import fixture, ToolError\n\
         def one(i):\n  try: return fixture.add(a=i, b=1000)['sum']\n  except ToolError as e: return e.code\n\
         with ThreadPoolExecutor(64) as pool: r = list(pool.map(one, range(64)))\n[r, fixture.count().get('add', 0)]",
    ),
];

fn sums() -> Value {
    (0..64).map(|i| json!(i + 1000)).collect()
}

#[tokio::test]
async fn sixty_four_calls_at_once_are_two_questions_and_each_is_made_exactly_once() {
    let mut table = Table::new("64 calls at once");
    for (era, mode) in eras() {
        for (index, (_, code)) in PARALLEL.iter().enumerate() {
            let lockhouse = lockhouse("");
            let person = Person::who_says(Says::Bare);
            let asked = session(&lockhouse, &person, mode.clone()).await;
            let answer = asked.run_asking(code).await;
            let name = format!("{era}, program {index}");
            table.row(&name, equal(answer["value"].clone(), json!([sums(), 64])));
            let questions = person.asked().len();
            table.row(format!("{name}: questions"), ensure((1..=4).contains(&questions), questions));
            let calls: Vec<Value> = records(&lockhouse, "call");
            let numbers: BTreeSet<String> = calls.iter().map(|call| call["call"].to_string()).collect();
            table.row(format!("{name}: records"), equal((calls.len(), numbers.len()), (65, 65)));
            let digests: BTreeSet<String> =
                records(&lockhouse, "approval").iter().map(|record| record["digest"].to_string()).collect();
            table.row(format!("{name}: digests"), equal(digests.len(), 64));
            table.row(format!("{name}: outcomes"), equal(outcomes(&lockhouse).len(), 128));
        }
        let lockhouse = lockhouse("");
        let asked = session(&lockhouse, &Person::who_says(Says::No), mode.clone()).await;
        let answer = asked.run_asking(PARALLEL[0].1).await;
        let declined: Value = vec![json!("approval_declined"); 64].into();
        table.row(format!("{era}: declined"), equal(answer["value"].clone(), json!([declined, 0])));
    }
    table.finish();
}

#[tokio::test]
async fn a_table_shows_every_call_and_one_answer_counts_for_those_alone() {
    let lockhouse = lockhouse("");
    let asked = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    let code = "\
import asyncio
from mcp_tools.aio import fixture
from mcp_tools import ToolError
async def safe(call):
  try: return await call
  except ToolError as e: return e.code
first = await asyncio.gather(safe(fixture.add(a=1, b=2)), safe(fixture.echo(value='x' * 300)), safe(fixture.delete_everything()))
second = await asyncio.gather(safe(fixture.add(a=3, b=4)), safe(fixture.add(a=5, b=6)))
[first[0]['sum'], second, await fixture.count()]
";
    let answering = async {
        let first = approver.next("ask").await;
        approver.answer(&first, "approve", "once").await;
        let second = approver.next("ask").await;
        approver.answer(&second, "decline", "once").await;
        (first["ask"].clone(), second["ask"].clone())
    };
    let (answer, (first, second)) = tokio::join!(asked.run_asking(code), answering);
    let count = json!({"add": 1, "echo": 1, "delete_everything": 1, "count": 1});
    assert_eq!(answer["value"], json!([3, ["approval_declined", "approval_declined"], count]), "{answer}");
    let text = first["text"].as_str().unwrap();
    for words in [
        "Running code asks to make 3 calls: 1 × fixture.add, 1 × fixture.delete_everything, 1 × fixture.echo.\n",
        "    |   1  fixture.add                   line 7  {\"a\":1,\"b\":2}",
        "  \"value\"\n    |        {\"value\":\"xxxx",
        "fixture.delete_everything: it may destroy or overwrite things",
        "The program says that the calls are at these lines of its code:\n    |     7  first = await asyncio.gather(",
        "of exactly these calls.",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    assert_ne!(first["digest"], second["digest"]);
    let sources: Vec<&Value> = second["calls"].as_array().unwrap().iter().map(|call| &call["line"]).collect();
    assert_eq!(sources, [&json!(8), &json!(8)]);
}

#[tokio::test]
async fn an_answer_for_the_execution_lets_those_go_that_wait_behind_it() {
    let lockhouse = lockhouse("");
    let person = Person::who_says(Says::Yes(json!({"scope": "execution"})));
    let asked = session(&lockhouse, &person, Session::latest()).await;
    let answer = asked.run_asking(PARALLEL[0].1).await;
    assert_eq!(answer["value"], json!([sums(), 64]), "{answer}");
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn an_execution_asks_a_hundred_times_and_no_more() {
    let lockhouse = lockhouse("");
    let asked = session(&lockhouse, &Person::default(), Session::latest()).await;
    let mut approver = Approver::watching(&lockhouse).await;
    let code = "\
from mcp_tools import fixture, ToolError
made, told = 0, ''
for i in range(103):
  try: made += fixture.echo(value=i)['value'] == i
  except ToolError as e: told = str(e)
[made, told]
";
    let answering = async {
        loop {
            let question = approver.next("ask").await;
            approver.answer(&question, "approve", "once").await;
        }
    };
    let answer = tokio::select! {
        answer = asked.run_asking(code) => answer,
        () = answering => unreachable!(),
    };
    assert_eq!(answer["value"][0], 100, "{answer}");
    assert!(answer["value"][1].as_str().unwrap().contains("has asked them 100 times already"), "{answer}");
}

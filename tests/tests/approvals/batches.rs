//! Tests of approval prompts for concurrent calls: Lockhouse combines the calls into one prompt, and the approver's
//! answer covers exactly the calls in that prompt.

use std::collections::BTreeSet;

use lockhouse_tests::{Approver, ClientUser, Session, Table, UserReply, ensure, equal};
use serde_json::{Value, json};

use crate::approvals::{eras, lockhouse, outcomes, records, session};

/// Python programs that make 64 concurrent calls of the tool `add`, one with asyncio and one with threads. Each entry
/// is a pair of the language and the code.
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
async fn sixty_four_concurrent_calls_are_two_prompts_and_each_call_is_made_exactly_once() {
    let mut table = Table::new("64 calls at once");
    for (era, mode) in eras() {
        for (index, (_, code)) in PARALLEL.iter().enumerate() {
            let lockhouse = lockhouse("");
            let person = ClientUser::replying(UserReply::AcceptEmpty);
            let ai_client = session(&lockhouse, &person, mode.clone()).await;
            let answer = ai_client.run_asking(code).await;
            let name = format!("{era}, program {index}");
            table.row(&name, equal(answer["value"].clone(), json!([sums(), 64])));
            let questions = person.received_requests().len();
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
        let ai_client = session(&lockhouse, &ClientUser::replying(UserReply::Decline), mode.clone()).await;
        let answer = ai_client.run_asking(PARALLEL[0].1).await;
        let declined: Value = vec![json!("approval_declined"); 64].into();
        table.row(format!("{era}: declined"), equal(answer["value"].clone(), json!([declined, 0])));
    }
    table.finish();
}

#[tokio::test]
async fn a_batch_prompt_shows_every_call_and_its_answer_covers_only_those() {
    let lockhouse = lockhouse("");
    let ai_client = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
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
    let (answer, (first, second)) = tokio::join!(ai_client.run_asking(code), answering);
    let count = json!({"add": 1, "echo": 1, "delete_everything": 1, "count": 1});
    assert_eq!(answer["value"], json!([3, ["approval_declined", "approval_declined"], count]), "{answer}");
    let text = first["text"].as_str().unwrap();
    for words in [
        "Running code asks to make 3 calls: 1 × fixture.add, 1 × fixture.delete_everything, 1 × fixture.echo.\n",
        "    |   1  fixture.add                   line 7  {\"a\":1,\"b\":2}",
        "  \"value\"\n    |        {\"value\":\"xxxx",
        "fixture.delete_everything: it may destroy or overwrite things",
        "The program says that the calls are at these lines of its code, whose comments may be wrong:\n    |     7  first = await asyncio.gather(",
        "of exactly these calls.",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    assert_ne!(first["digest"], second["digest"]);
    let sources: Vec<&Value> = second["calls"].as_array().unwrap().iter().map(|call| &call["line"]).collect();
    assert_eq!(sources, [&json!(8), &json!(8)]);
}

#[tokio::test]
async fn an_answer_for_the_execution_also_releases_waiting_calls() {
    let lockhouse = lockhouse("");
    let person = ClientUser::replying(UserReply::Accept(json!({"scope": "execution"})));
    let ai_client = session(&lockhouse, &person, Session::latest()).await;
    let answer = ai_client.run_asking(PARALLEL[0].1).await;
    assert_eq!(answer["value"], json!([sums(), 64]), "{answer}");
    assert_eq!(person.received_requests().len(), 1);
}

#[tokio::test]
async fn an_execution_can_ask_at_most_a_hundred_times() {
    let lockhouse = lockhouse("");
    let ai_client = session(&lockhouse, &ClientUser::default(), Session::latest()).await;
    let mut approver = Approver::connected(&lockhouse).await;
    let code = "\
from mcp_tools import fixture, ToolError
made, reported = 0, ''
for i in range(103):
  try: made += fixture.echo(value=i)['value'] == i
  except ToolError as e: reported = str(e)
[made, reported]
";
    let answering = async {
        loop {
            let question = approver.next("ask").await;
            approver.answer(&question, "approve", "once").await;
        }
    };
    let answer = tokio::select! {
        answer = ai_client.run_asking(code) => answer,
        () = answering => unreachable!(),
    };
    assert_eq!(answer["value"][0], 100, "{answer}");
    assert!(answer["value"][1].as_str().unwrap().contains("has asked them 100 times already"), "{answer}");
}

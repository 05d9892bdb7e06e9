//! Tests of many programs and calls at the same time.

use futures_util::future::join_all;
use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::json;

#[tokio::test]
async fn fifty_programs_at_once_over_one_connection_all_get_their_own_answer() {
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let program = |number: usize| match number % 2 {
        0 => (
            "python",
            format!("from mcp_tools.fixture import add\nprint({number})\nadd(a={number}, b=1000)['sum']"),
        ),
        _ => (
            "typescript",
            format!("console.log({number})\n;(await fixture.add({{a: {number}, b: 1000}})).sum"),
        ),
    };
    let answers = join_all((0..50).map(async |number| {
        let (language, code) = program(number);
        session.run_code(language, &code).await
    }))
    .await;
    let mut table = Table::new("50 concurrent programs");
    for (number, answer) in answers.iter().enumerate() {
        let found = (answer["value"].clone(), answer["stdout"].clone());
        let outcome = equal(found, (json!(number + 1000), json!(format!("{number}\n"))));
        table.row(format!("program {number}"), outcome.map_err(|e| format!("{e} {answer}")));
    }
    let executions: std::collections::HashSet<String> =
        answers.iter().map(|answer| answer["execution"].to_string()).collect();
    table.row("each has a name of its own", equal(executions.len(), 50));
    table.finish();
}

#[tokio::test]
async fn a_hundred_calls_in_parallel_each_get_their_own_result() {
    let rows = [
        (
            "python",
            "asyncio.gather",
            "import asyncio\nfrom mcp_tools.aio.fixture import add\n\
            [r['sum'] for r in await asyncio.gather(*[add(a=i, b=1000) for i in range(100)])]",
        ),
        (
            "python",
            "ThreadPoolExecutor",
            "from concurrent.futures import ThreadPoolExecutor\nfrom mcp_tools.fixture import add\n\
            with ThreadPoolExecutor(100) as pool: r = list(pool.map(lambda i: add(a=i, b=1000)['sum'], range(100)))\nr",
        ),
        (
            "python",
            "to_thread",
            "import asyncio\nfrom mcp_tools.fixture import add\n\
            [r['sum'] for r in await asyncio.gather(*[asyncio.to_thread(add, i, 1000) for i in range(100)])]",
        ),
        (
            "typescript",
            "Promise.all",
            "(await Promise.all([...Array(100).keys()].map(i => fixture.add({a: i, b: 1000})))).map(r => r.sum)",
        ),
        (
            "typescript",
            "Promise.allSettled",
            "(await Promise.allSettled([...Array(100).keys()].map(i => fixture.add(i, 1000)))).map(r => r.value.sum)",
        ),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let expected: Vec<u64> = (1000..1100).collect();
    let mut table = Table::new("100 concurrent calls");
    for (language, name, code) in rows {
        let answer = session.run_code(language, code).await;
        let outcome = equal(answer["value"].clone(), json!(expected));
        table.row(format!("{language}: {name}"), outcome.map_err(|e| format!("{e} {}", answer["error"])));
        table.row(
            format!("{language}: {name}: each is told"),
            equal(answer["calls"][0]["count"].clone(), json!(100)),
        );
    }
    table.finish();
}

#[tokio::test]
async fn slow_calls_run_concurrently() {
    // In sequence, 40 calls of 500 ms each would take 20 s, and the deadline is 10 s.
    let rows = [
        (
            "python",
            "import asyncio\nfrom mcp_tools.aio.fixture import slow\nlen(await asyncio.gather(*[slow(ms=500) for _ in range(40)]))",
        ),
        (
            "python",
            "from concurrent.futures import ThreadPoolExecutor\nfrom mcp_tools.fixture import slow\n\
            with ThreadPoolExecutor(40) as pool: r = len(list(pool.map(lambda _: slow(ms=500), range(40))))\nr",
        ),
        ("typescript", "(await Promise.all([...Array(40)].map(() => fixture.slow({ms: 500})))).length"),
    ];
    let lockhouse = Lockhouse::with_fixture().config("[limits]\ntimeout_seconds = 10\n");
    let session = lockhouse.serve().await;
    for (language, code) in rows {
        let answer = session.run_code(language, code).await;
        assert_eq!(answer["value"], 40, "{language}: {answer}");
    }
}

#[tokio::test]
async fn programs_beyond_the_queue_are_refused_with_a_reason_and_the_others_run() {
    let config = "[pool]\nidle = 1\nrunning = 2\nqueue = 2\n";
    let lockhouse = Lockhouse::with_fixture().config(config);
    let session = lockhouse.serve().await;
    let code = "await fixture.slow({ms: 300}); 1";
    let answers = join_all((0..30).map(|_| session.run_code("typescript", code))).await;
    let (ran, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer["status"] == "ok");
    assert!(ran.len() >= 2, "{ran:?}");
    assert!(!refused.is_empty());
    for answer in refused {
        let error = &answer["error"];
        assert!(error["type"] == "Busy" && error["retry_after_s"].as_u64() >= Some(1), "{answer}");
    }
    let mut table = Table::new("afterwards");
    let next = session.run_code("typescript", "1 + 1").await;
    table.row("the next program runs", ensure(next["value"] == 2, next));
    table.finish();
}

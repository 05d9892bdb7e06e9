//! Tests that no state of one execution is visible to another execution.

use std::collections::HashSet;

use futures_util::future::join_all;
use lockhouse_tests::{Lockhouse, Table, ensure};

#[tokio::test]
async fn no_state_passes_from_one_execution_to_the_next() {
    let rows = [
        ("python", "a name", "secret = 1", "'secret' in globals()"),
        (
            "python",
            "a built-in",
            "import builtins\nbuiltins.secret = 1",
            "import builtins\nhasattr(builtins, 'secret')",
        ),
        (
            "python",
            "an attribute of a module",
            "import json\njson.secret = 1",
            "import json\nhasattr(json, 'secret')",
        ),
        (
            "python",
            "a module",
            "import sys\nsys.modules['secret'] = sys",
            "import sys\n'secret' in sys.modules",
        ),
        (
            "python",
            "the environment",
            "import os\nos.environ['SECRET'] = '1'",
            "import os\n'SECRET' in os.environ",
        ),
        ("python", "a patched function", "import json\njson.dumps = len", "import json\njson.dumps([]) == 0"),
        ("typescript", "a global", "globalThis.secret = 1", "'secret' in globalThis"),
        ("typescript", "a prototype", "(Object.prototype as any).secret = 1", "'secret' in {}"),
        (
            "typescript",
            "a patched function",
            "JSON.stringify = () => 'secret'",
            "JSON.stringify(1) === 'secret'",
        ),
        ("typescript", "a name", "var secret = 1", "typeof secret !== 'undefined'"),
        (
            "typescript",
            "a server's object",
            "Object.setPrototypeOf(Array, null)",
            "Object.getPrototypeOf(Array) === null",
        ),
    ];
    let lockhouse = Lockhouse::with_fixture();
    let session = lockhouse.serve().await;
    let mut table = Table::new("state");
    for (language, name, sets, reads) in rows {
        let both = session
            .run_code(
                language,
                &format!("{sets}\n;{reads}").replace("\n;", if language == "python" { "\n" } else { ";\n" }),
            )
            .await;
        table.row(format!("{language}: {name}: control within one"), ensure(both["value"] == true, &both));
        for _ in 0..6 {
            let set = session.run_code(language, sets).await;
            table.row(format!("{language}: {name}: set"), ensure(set["status"] == "ok", &set));
        }
        let read = session.run_code(language, reads).await;
        table.row(format!("{language}: {name}"), ensure(read["value"] == false, &read));
    }
    table.finish();
}

#[tokio::test]
async fn random_numbers_differ_between_workers() {
    let rows = [
        ("python", "random", "import random\nrandom.random()"),
        ("python", "an own generator", "import random\nrandom.Random().random()"),
        (
            "python",
            "numbers of random's functions",
            "import random\n[random.randrange(1 << 30), random.choice(range(1 << 30))]",
        ),
        ("python", "secrets", "import secrets\nsecrets.token_hex()"),
        ("python", "uuid", "import uuid\nuuid.uuid4()"),
        ("python", "os.urandom", "import os\nos.urandom(8).hex()"),
        ("typescript", "Math.random", "Math.random()"),
        ("typescript", "several draws of Math.random", "[Math.random(), Math.random()]"),
    ];
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("random numbers of 12 workers");
    for (language, name, code) in rows {
        let answers = join_all((0..12).map(|_| session.run_code(language, code))).await;
        let draws: HashSet<String> = answers.iter().map(|answer| answer["value"].to_string()).collect();
        table.row(
            format!("{language}: {name}"),
            ensure(draws.len() == 12 && !draws.contains("null"), answers),
        );
    }
    table.finish();
}

#[test]
fn hashes_differ_between_zygotes() {
    let lockhouse = Lockhouse::new();
    let hashes: HashSet<String> =
        (0..4).map(|_| lockhouse.answer("python", "hash('lockhouse')")["value"].to_string()).collect();
    assert_eq!(hashes.len(), 4, "{hashes:?}");
}

#[test]
fn the_users_environment_variables_are_absent() {
    let lockhouse = Lockhouse::new();
    let code = "import os, sys\n[dict(os.environ), sys.argv, sys.path, os.getcwd()]";
    let mut command = lockhouse.command(&["run", "-c", code, "--language", "python", "--json"]);
    let answer = lockhouse_tests::CommandOutput::run(command.env("MY_TOKEN", "hunter2"), b"").json();
    assert_eq!(answer["status"], "ok", "{answer}");
    let text = answer.to_string();
    assert!(!text.contains("hunter2") && !text.contains(lockhouse.path("").to_str().unwrap()), "{answer}");
    let variables = answer["value"][0].as_object().expect("the environment");
    // Python itself sets this variable where no locale is configured.
    assert!(variables.keys().all(|name| name == "LC_CTYPE"), "{answer}");
}

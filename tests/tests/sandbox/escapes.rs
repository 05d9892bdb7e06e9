//! Attempts in TypeScript. The language itself has no way out, so these look for one that somebody left there.

use lockhouse_tests::{Lockhouse, Table, ensure};

const WORDS: &str = "not available in the Lockhouse sandbox";

/// Named in words: programs for Node.js, Deno and browsers use these.
const TOLD: &[(&str, &str)] = &[
    ("fetch", "await fetch('http://127.0.0.1/')"),
    ("require", "require('fs').readFileSync('/etc/passwd')"),
    ("require of node:", "require('node:child_process').execSync('id')"),
    ("import", "import fs from 'fs'\nfs.readFileSync('/etc/passwd')"),
    ("dynamic import", "(await import('fs')).readFileSync('/etc/passwd')"),
    ("import of QuickJS's own std", "import * as std from 'std'\nstd.loadFile('/etc/passwd')"),
    ("import of QuickJS's own os", "import * as os from 'os'\nos.exec(['id'])"),
    ("import of a file", "import x from './x.js'\nx"),
    ("import of a URL", "await import('https://example.com/x.js')"),
];

/// Not there at all.
const ABSENT: &[(&str, &str)] = &[
    ("process", "process.exit(0)"),
    ("Deno", "Deno.readTextFileSync('/etc/passwd')"),
    ("Bun", "Bun.file('/etc/passwd')"),
    ("WebSocket", "new WebSocket('ws://127.0.0.1')"),
    ("XMLHttpRequest", "new XMLHttpRequest()"),
    ("Worker", "new Worker('x.js')"),
    ("std", "std.loadFile('/etc/passwd')"),
    ("os", "os.exec(['id'])"),
    ("loadScript", "loadScript('/etc/passwd')"),
    ("scriptArgs", "scriptArgs[0]"),
    ("process through a function", "new Function('return process')()"),
    ("process through a constructor", "[].constructor.constructor('return process')().exit()"),
    ("WebAssembly", "new WebAssembly.Module(new Uint8Array(8))"),
];

#[tokio::test]
async fn what_other_runtimes_offer_is_refused_and_can_be_caught() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("attempts in TypeScript");
    let control =
        session.run_code("typescript", "globalThis.constructor.constructor('return 1 + 1')()").await;
    table.row("control: code can be made at run time", ensure(control["value"] == 2, &control));
    for (rows, words) in [(TOLD, WORDS), (ABSENT, "")] {
        for (name, code) in rows {
            let answer = session.run_code("typescript", code).await;
            let message = answer["error"]["message"].as_str().unwrap_or_default();
            table.row(*name, ensure(answer["status"] == "error" && message.contains(words), &answer));
            if !code.contains("import ") {
                let caught = format!("let r = 0\ntry {{ {code} }} catch (error) {{ r = 1 }}\nr");
                let answer = session.run_code("typescript", &caught).await;
                table.row(format!("{name}: caught"), ensure(answer["value"] == 1, &answer));
            }
        }
    }
    table.finish();
}

#[test]
fn no_global_object_reaches_the_host() {
    let code = "Object.getOwnPropertyNames(globalThis).filter(n => /^(_|native|host|lockhouse|std|os|process|Deno|bjs|print$|load)/i.test(n))";
    let answer = Lockhouse::with_fixture().answer("typescript", code);
    assert_eq!(answer["value"], serde_json::json!([]), "{answer}");
}

#[tokio::test]
async fn hostile_programs_do_not_crash_the_transformer_or_the_engine() {
    let deep =
        |open: &str, close: &str, count: usize| format!("{}1{}", open.repeat(count), close.repeat(count));
    let rows = [
        ("brackets", deep("(", ")", 20_000)),
        ("lists", deep("[", "]", 20_000)),
        ("blocks", deep("{", "}", 20_000)),
        ("functions", deep("(()=>", ")()", 5_000)),
        ("templates", deep("`${", "}`", 5_000)),
        ("types", format!("type T = {}; 1", deep("Array<", ">", 5_000).replace('1', "number"))),
        ("operators", format!("{}1", "- ".repeat(20_000))),
        ("a long sum", format!("1{}", "+1".repeat(40_000))),
        ("else if", format!("{} {{}}", "if (0) {} else ".repeat(10_000))),
        ("a regular expression", "/(a+)+$/.test('a'.repeat(40) + 'b')".into()),
        ("a regular expression that is deep", format!("new RegExp('{}')", "(".repeat(30_000) + &")".repeat(30_000))),
        ("a proxy that traps everything", "new Proxy({}, {get() { throw 1 }, ownKeys() { throw 2 }, has() { throw 3 }})".into()),
        ("a getter that never ends", "({get x() { for (;;); }})".into()),
        ("an error with hostile getters", "const e = new Error('x'); Object.defineProperty(e, 'stack', {get() { for (;;); }}); throw e".into()),
        ("patched built-ins", "JSON.stringify = Array.prototype.map = Promise.prototype.then = Object.keys = () => { throw 7 }; 5".into()),
        ("a lone surrogate", "'\\ud800' + String.fromCharCode(0xdfff)".into()),
        ("throwing undefined", "throw undefined".into()),
        ("throwing null", "throw null".into()),
    ];
    let lockhouse = Lockhouse::new().config("[limits]\ntimeout_seconds = 2\n");
    let session = lockhouse.serve().await;
    let mut table = Table::new("hostile programs in TypeScript");
    for (name, code) in rows {
        let answer = session.run_code("typescript", &code).await;
        let told = answer["status"] == "ok" || answer["error"]["message"].is_string();
        let crashed = answer["status"] == "killed";
        let shown: String = answer.to_string().chars().take(400).collect();
        table.row(name, ensure(told && !crashed, shown));
    }
    table.finish();
}

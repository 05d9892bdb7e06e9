//! Runs each program of `programs/` in a worker and, as the control, in Node.js: with equal results.

use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};
use serde_json::{Value, json};

const PROGRAMS: &str = include_str!("programs/modules.txt");

/// What the sandbox does not have: programs with the words that their errors must have.
const REFUSED: &[(&str, &[&str])] = &[
    ("new URL('nope')", &["TypeError", "Invalid URL"]),
    ("const u = new URL('http://a'); u.href = 'nope'", &["TypeError", "Invalid URL"]),
    ("import { createCipheriv } from 'node:crypto'\ncreateCipheriv()", &["createCipheriv", "createHash"]),
    ("import { createHash } from 'crypto'\ncreateHash('sha3-256')", &["sha3-256", "sha256"]),
    ("await crypto.subtle.digest('MD5', new Uint8Array())", &["MD5", "SHA-256"]),
    (
        "await crypto.subtle.importKey('raw', new Uint8Array(), 'HMAC', false, ['sign'])",
        &["crypto.subtle.importKey", "createHmac"],
    ),
    ("Buffer.from('a', 'utf7')", &["TypeError", "utf7"]),
    ("Buffer.from(5)", &["TypeError", "number"]),
    ("new Buffer('a')", &["TypeError", "Buffer.from"]),
    ("Buffer.alloc(2).readUInt32LE(0)", &["RangeError", "out of range"]),
    ("import url from 'url'\nurl.parse('http://a')", &["node:url has no parse", "URL"]),
    ("@sealed class A {}", &["SyntaxError", "decorators are not supported", "function call"]),
    ("class A {\n  @log m() {}\n}", &["SyntaxError", "decorators are not supported"]),
];

#[tokio::test]
async fn programs_find_the_functions_of_node() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("modules in TypeScript");
    let parts = PROGRAMS.strip_prefix("=== ").expect("a program").split("\n=== ");
    for (name, code) in parts.map(|part| part.split_once('\n').expect("a program has lines")) {
        let (body, last) = code.trim_end().rsplit_once('\n').unwrap_or(("", code));
        let printing = format!("{body}\nconsole.log(JSON.stringify({last}))");
        let outside = CommandOutput::run(
            Command::new("node").args(["--input-type", "module", "--eval", &printing]),
            b"",
        );
        let answer = session.run_code("typescript", code).await;
        let expected: Option<Value> = serde_json::from_str(outside.stdout.trim()).ok();
        let is_same = expected.is_some() && answer.get("value") == expected.as_ref();
        table.row(
            name,
            ensure(is_same, (&answer["value"], &answer["error"], &outside.stdout, &outside.stderr)),
        );
    }
    table.finish();
}

#[tokio::test]
async fn results_have_the_forms_of_bytes_and_urls() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("results and output");
    for (code, value) in [
        ("Buffer.from('hi')", json!({ "base64": "aGk=" })),
        ("[{ b: Buffer.from('hi') }]", json!([{ "b": { "base64": "aGk=" } }])),
        ("({ type: 'Buffer', data: [1] })", json!({ "type": "Buffer", "data": [1] })),
        ("new URL('http://a?b=c')", json!("http://a/?b=c")),
        ("({ u: new URL('http://a') })", json!({ "u": "http://a/" })),
    ] {
        let answer = session.run_code("typescript", code).await;
        table.row(code, ensure(answer["value"] == value, &answer));
    }
    let answer = session
        .run_code(
            "typescript",
            "console.log(Buffer.from('hi'), new URL('http://a'), new URLSearchParams('a=1'))",
        )
        .await;
    let expected = "<Buffer 68 69> URL { href: 'http://a/' } URLSearchParams { 'a=1' }\n";
    table.row("console.log", ensure(answer["stdout"] == expected, &answer["stdout"]));
    table.finish();
}

#[tokio::test]
async fn what_is_missing_is_an_error_that_says_what_there_is() {
    let lockhouse = Lockhouse::new();
    let session = lockhouse.serve().await;
    let mut table = Table::new("errors");
    for (code, words) in REFUSED {
        let answer = session.run_code("typescript", code).await;
        let told = format!("{}: {}", answer["error"]["type"], answer["error"]["message"]);
        let is_right = answer["status"] == "error" && words.iter().all(|word| told.contains(word));
        table.row(*code, ensure(is_right, &answer));
    }
    table.finish();
}

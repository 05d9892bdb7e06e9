//! Writes seeds for the fuzzer into the corpus: an example of each kind of line. Run this program after a change of what is
//! read: `cargo run --example seeds`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

fn main() {
    let long = "x".repeat(2_000);
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let name = "m".repeat(300);
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"é\n"}],"isError":false}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":2,"result":{"a":1e400,"a":[null]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no","data":[1]}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
        "not json\nagain {\n\n[]".to_owned(),
        deep,
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{name}"}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{long}"}}"#),
        format!(r#"{{"result":"{long}","jsonrpc":"2.0","id":8}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"x","params":"{long}"}}"#),
    ];
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/server_lines");
    std::fs::create_dir_all(&directory).unwrap();
    for (index, line) in lines.iter().enumerate() {
        let bytes = [&[(index * 7) as u8][..], line.as_bytes()].concat();
        std::fs::write(directory.join(format!("line-{index:02}")), bytes).unwrap();
    }
}

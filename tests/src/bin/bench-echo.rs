//! A bare upstream server for benchmarks, which uses no MCP library and so costs little time. `bench-echo TOOLS` has
//! TOOLS tools that add two numbers under different names, the first of which is `add`, and the tool `text`, which returns
//! a text with a given number of bytes. It answers over standard input and output.

use std::error::Error;
use std::io::{BufRead, Write};

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1).ok_or("usage: bench-echo TOOLS")?.parse()?;
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else { continue };
        let answer = match result(&message, count) {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown method"}})
            }
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

/// Returns the result of a request to a server with `count` tools; `None` for an unknown method.
fn result(message: &Value, count: usize) -> Option<Value> {
    let parameters = &message["params"];
    Some(match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": parameters["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench-echo", "version": "1"},
        }),
        "tools/list" => json!({"tools": (0..count).map(tool).chain([text()]).collect::<Vec<_>>()}),
        "tools/call" if parameters["name"] == "text" => {
            let bytes = usize::try_from(parameters["arguments"]["bytes"].as_u64().unwrap_or(0)).unwrap_or(0);
            json!({"content": [{"type": "text", "text": "x".repeat(bytes)}]})
        }
        "tools/call" => {
            let [a, b] = ["a", "b"].map(|name| parameters["arguments"][name].as_i64().unwrap_or(0));
            let sum = json!({"sum": a + b});
            json!({"content": [{"type": "text", "text": sum.to_string()}], "structuredContent": sum})
        }
        "ping" => json!({}),
        _ => return None,
    })
}

fn tool(number: usize) -> Value {
    let name = if number == 0 { "add".to_owned() } else { format!("add_{number}") };
    let integer = |description: &str| json!({"type": "integer", "description": description});
    let properties = json!({"a": integer("The first number."), "b": integer("The second number.")});
    let input = json!({"type": "object", "properties": properties, "required": ["a", "b"]});
    let output = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    let description = format!("Adds two numbers, as variant {number}.");
    json!({"name": name, "description": description, "inputSchema": input, "outputSchema": output})
}

fn text() -> Value {
    let bytes = json!({"type": "integer", "description": "The number of bytes."});
    let input = json!({"type": "object", "properties": {"bytes": bytes}, "required": ["bytes"]});
    json!({"name": "text", "description": "Returns a text.", "inputSchema": input})
}

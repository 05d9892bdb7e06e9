//! Lockhouse with the scripted upstream server `tests/servers/scripted.py`.

use std::path::{Path, PathBuf};

use lockhouse_tests::{Lockhouse, Session, children};
use serde_json::{Value, json};

/// A policy that allows all tools of the server.
pub(crate) const ALLOW_ALL: &str = "version = 1\n[servers.scripted]\nallow = [\"*\"]\n";

/// Lockhouse, and the directory of the files that the scripted server reads and writes.
pub(crate) struct Scripted {
    pub(crate) lockhouse: Lockhouse,
    pub(crate) place: PathBuf,
    /// The server's entry in an AI client's configuration file.
    pub(crate) entry: Value,
}

impl Scripted {
    /// Configures the server with additional keys of `[servers.scripted]`, flags, and the names of its tools.
    pub(crate) fn new(keys: &str, flags: &[&str], tools: &[&str]) -> Self {
        let lockhouse = Lockhouse::new().policy(ALLOW_ALL);
        let place = lockhouse.path("scripted");
        std::fs::create_dir_all(&place).expect("a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/scripted.py");
        let mut arguments = vec![json!(script), json!(place)];
        arguments.extend(flags.iter().map(|flag| json!(flag)));
        let config =
            format!("[servers.scripted]\ncommand = \"python3\"\nargs = {}\n{keys}\n", json!(arguments));
        let entry = json!({"command": "python3", "args": arguments});
        let scripted = Self { lockhouse: lockhouse.config(&config), place, entry };
        scripted.set_tools(tools.iter().map(|name| tool(name, "")).collect());
        scripted
    }

    /// Replaces the tools that the server lists.
    pub(crate) fn set_tools(&self, tools: Vec<Value>) {
        std::fs::write(self.place.join("tools.json"), Value::Array(tools).to_string()).expect("a file");
    }

    /// Permits a server with `--waits` to answer.
    pub(crate) fn release(&self) {
        std::fs::write(self.place.join("open"), "").expect("a file");
    }

    /// Returns how many lines the server has written to one of its files: `starts`, `listings`, `calls` or `cancelled`.
    pub(crate) fn count(&self, file: &str) -> usize {
        std::fs::read_to_string(self.place.join(file)).unwrap_or_default().lines().count()
    }

    /// Runs a Python program and returns its value, or the whole answer if it has none.
    pub(crate) async fn value(session: &Session, code: &str) -> Value {
        let answer = session.run_code("python", code).await;
        answer.get("value").cloned().unwrap_or(answer)
    }

    /// Calls a tool and returns its result, or the code and the message of its error.
    pub(crate) async fn outcome(session: &Session, call: &str) -> Value {
        let code = format!(
            "from mcp_tools import ToolError, call_tool\ntry: r = call_tool('scripted', {call})\nexcept ToolError as e: r = [e.code, str(e)]\nr"
        );
        Self::value(session, &code).await
    }
}

/// Returns a tool definition that accepts any arguments.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Returns the process ids of the server.
pub(crate) fn processes(session: &Session) -> Vec<u32> {
    let of_server = |process: &lockhouse_tests::Process| process.command.contains("scripted.py");
    children(session.pid()).into_iter().filter(of_server).map(|process| process.pid).collect()
}

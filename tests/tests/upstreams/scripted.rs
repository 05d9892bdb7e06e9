//! Lockhouse with `tests/servers/scripted.py` behind it.

use std::path::{Path, PathBuf};

use lockhouse_tests::{Lockhouse, Session, children};
use serde_json::{Value, json};

/// A policy that allows everything of it.
pub(crate) const ALLOW_ALL: &str = "version = 1\n[servers.scripted]\nallow = [\"*\"]\n";

/// The files that the server reads and writes.
pub(crate) struct Scripted {
    pub(crate) lockhouse: Lockhouse,
    pub(crate) place: PathBuf,
    /// The server, as AI clients' files have it.
    pub(crate) entry: Value,
}

impl Scripted {
    /// With keys of `[servers.scripted]`, flags of the server, and its tools by name.
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
        scripted.offer(tools.iter().map(|name| tool(name, "")).collect());
        scripted
    }

    /// From now on the server lists these.
    pub(crate) fn offer(&self, tools: Vec<Value>) {
        std::fs::write(self.place.join("tools.json"), Value::Array(tools).to_string()).expect("a file");
    }

    /// Lets a server with `--waits` answer.
    pub(crate) fn open(&self) {
        std::fs::write(self.place.join("open"), "").expect("a file");
    }

    /// How often a file of the server has got a line: `starts`, `listings`, `calls`, `cancelled`.
    pub(crate) fn count(&self, file: &str) -> usize {
        std::fs::read_to_string(self.place.join(file)).unwrap_or_default().lines().count()
    }

    /// The value of a Python program, or the whole answer if there is none.
    pub(crate) async fn value(session: &Session, code: &str) -> Value {
        let answer = session.run_code("python", code).await;
        answer.get("value").cloned().unwrap_or(answer)
    }

    /// The code of the error with which a call fails, or its value.
    pub(crate) async fn outcome(session: &Session, call: &str) -> Value {
        let code = format!(
            "from mcp_tools import ToolError, call_tool\ntry: r = call_tool('scripted', {call})\nexcept ToolError as e: r = [e.code, str(e)]\nr"
        );
        Self::value(session, &code).await
    }
}

/// A tool that takes anything.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// The processes of the server.
pub(crate) fn processes(session: &Session) -> Vec<u32> {
    let of_server = |process: &lockhouse_tests::Process| process.command.contains("scripted.py");
    children(session.pid()).into_iter().filter(of_server).map(|process| process.pid).collect()
}

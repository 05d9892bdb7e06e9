//! A Lockhouse test fixture with the upstream server `tests/servers/scripted.py`, whose behaviour each test selects by
//! flags and files.

use std::path::{Path, PathBuf};

use lockhouse_tests::{Lockhouse, Session, children};
use serde_json::{Value, json};

/// A policy that allows all tools of the upstream server `scripted`.
pub(crate) const ALLOW_ALL: &str = "version = 1\n[servers.scripted]\nallow = [\"*\"]\n";

/// A Lockhouse test fixture, and the directory of the files through which the test controls and observes its scripted
/// server.
pub(crate) struct Scripted {
    pub(crate) lockhouse: Lockhouse,
    pub(crate) place: PathBuf,
    /// The scripted server's entry for the configuration file of an AI client: its command and arguments, as JSON.
    pub(crate) entry: Value,
}

impl Scripted {
    /// Configures the scripted server with additional configuration keys of `[servers.scripted]`, with flags of the
    /// script, and with tools of these names.
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

    /// Replaces the tools that the scripted server lists.
    pub(crate) fn set_tools(&self, tools: Vec<Value>) {
        std::fs::write(self.place.join("tools.json"), Value::Array(tools).to_string()).expect("a file");
    }

    /// Lets a scripted server with the flag `--waits` answer from now on.
    pub(crate) fn release(&self) {
        std::fs::write(self.place.join("open"), "").expect("a file");
    }

    /// Returns the number of lines in one of the files to which the scripted server writes one line for each event:
    /// `starts`, `listings`, `calls` or `cancelled`.
    pub(crate) fn count(&self, file: &str) -> usize {
        std::fs::read_to_string(self.place.join(file)).unwrap_or_default().lines().count()
    }

    /// Runs a Python program and returns its value, or the whole answer if the program has no value.
    pub(crate) async fn value(session: &Session, code: &str) -> Value {
        let answer = session.run_code("python", code).await;
        answer.get("value").cloned().unwrap_or(answer)
    }

    /// Returns a Python program that calls a tool of the scripted server. `call` has the call's arguments as Python code.
    /// The value of the program is the result, or a list with the code and the message of the error.
    pub(crate) fn program(call: &str) -> String {
        format!(
            "from mcp_tools import ToolError, call_tool\ntry: r = call_tool('scripted', {call})\nexcept ToolError as e: r = [e.code, str(e)]\nr"
        )
    }

    /// Runs the program [`Scripted::program`] and returns its value.
    pub(crate) async fn outcome(session: &Session, call: &str) -> Value {
        Self::value(session, &Self::program(call)).await
    }
}

/// Returns the definition of a tool that accepts any arguments.
pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Returns the process ids of the scripted servers that this Lockhouse runs.
pub(crate) fn processes(session: &Session) -> Vec<u32> {
    let of_server = |process: &lockhouse_tests::Process| process.command.contains("scripted.py");
    children(session.pid()).into_iter().filter(of_server).map(|process| process.pid).collect()
}

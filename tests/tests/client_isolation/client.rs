//! An AI client for the isolation tests, connected over HTTP or over standard input and output.

use lockhouse_tests::{HttpClient, Session, structured};
use serde_json::{Value, json};

pub(crate) enum Client {
    Http(HttpClient),
    Stdio(Session),
}

impl Client {
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Http(http_client) => http_client.call(tool, arguments).await,
            Self::Stdio(session) => structured(session.call(tool, arguments).await),
        }
    }

    /// Calls `run_code`, polls `get_result` until the run has ended, and returns the answer of the run.
    pub(crate) async fn run(&self, arguments: Value) -> Value {
        let mut answer = self.call("run_code", arguments).await;
        while answer["status"] == "running" {
            answer = self.call("get_result", json!({"handle": answer["handle"], "wait_s": 60})).await;
        }
        answer
    }

    pub(crate) async fn python(&self, code: &str) -> Value {
        self.run(json!({"language": "python", "code": code})).await
    }
}

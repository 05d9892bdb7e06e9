//! A client, however it came in.

use lockhouse_tests::{Door, Session, Visitor, structured};
use serde_json::{Value, json};

pub(crate) enum Client {
    Http(Visitor),
    Stdio(Session),
}

impl Client {
    pub(crate) fn http(door: &Door, token: Option<&str>) -> Self {
        Self::Http(door.visitor(token))
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        match self {
            Self::Http(visitor) => visitor.call(tool, arguments).await,
            Self::Stdio(session) => structured(session.call(tool, arguments).await),
        }
    }

    /// A run that is followed to its end, however long it takes.
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

//! Isolation tests for AI clients of every transport: no client can access another client's sessions, results, skills,
//! runs or audit records.

use lockhouse_tests::{Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

use crate::client_isolation::client::Client;

/// A Python program that makes a call which requires approval.
pub(crate) const ASKS: &str = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('fixture.add', {'a': 1, 'b': 2})['sum']\n\
    except ToolError as e: r = e.code\nr";

const DRAFT: &str = "import skills\nskills.save('NAME', 'Says a secret.', code='def NAME():\\n    return \"SEKRET\"\\n')['state']";
const IMPORT: &str =
    "try:\n    from skills.NAME import NAME\n    r = NAME()\nexcept Exception as e: r = str(e)\nr";
const SEARCH: &str = "import skills\n[s['name'] for s in skills.search('secret')]";
const LOAD: &str = "from mcp_tools import load_result, ToolError\ntry: r = len(load_result('HANDLE'))\nexcept ToolError as e: r = e.code\nr";

/// Returns a unique name that begins with `what`.
fn unique_name(what: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("{what}_{}", LAST.fetch_add(1, Ordering::Relaxed))
}

pub(crate) async fn all(table: &mut Table, pair: &str, lockhouse: &Lockhouse, clients: (&Client, &Client)) {
    let mut cases = IsolationCases { table, pair, clients };
    cases.session().await;
    cases.handle().await;
    cases.running().await;
    cases.draft(lockhouse).await;
    cases.audit(lockhouse).await;
}

struct IsolationCases<'a> {
    table: &'a mut Table,
    pair: &'a str,
    clients: (&'a Client, &'a Client),
}

impl IsolationCases<'_> {
    fn row(&mut self, case: &str, refused: Result<(), String>, control: Result<(), String>) {
        self.table.row(format!("{}: {case}", self.pair), refused);
        self.table.row(format!("{}: {case}: control", self.pair), control);
    }

    /// Tests sessions: two clients that use the same session name get separate sessions.
    async fn session(&mut self) {
        let (one, other) = self.clients;
        let name = unique_name("s");
        let run = |code: &str| json!({"language": "python", "code": code, "session": name});
        one.run(run("secret = 'SEKRET'")).await;
        let looks = "globals().get('secret', 'nothing')";
        let (theirs, own) = (other.run(run(looks)).await, one.run(run(looks)).await);
        self.row(
            "session",
            equal(theirs["value"].clone(), json!("nothing")),
            equal(own["value"].clone(), json!("SEKRET")),
        );
    }

    /// Tests stored results: the handle of a result that was too long to be shown works only for the client that got
    /// it.
    async fn handle(&mut self) {
        let (one, other) = self.clients;
        let answer = one.python("'SEKRET' * 1000").await;
        let handle = answer["truncated"].to_string();
        let handle =
            handle.split('"').find(|part| part.len() == 32).unwrap_or_else(|| panic!("{answer}")).to_owned();
        let ask = json!({"handle": handle});
        let (theirs, own) = (other.call("get_result", ask.clone()).await, one.call("get_result", ask).await);
        let refused = !theirs.to_string().contains("SEKRET") && theirs["status"] == "error";
        self.row("handle", ensure(refused, &theirs), ensure(own.to_string().contains("SEKRET"), &own));
        let load = LOAD.replace("HANDLE", &handle);
        let (theirs, own) = (other.python(&load).await, one.python(&load).await);
        self.row(
            "handle in code",
            equal(theirs["value"].clone(), json!("not_found")),
            equal(own["value"].clone(), json!(6_000)),
        );
    }

    /// Tests background runs: only the client that started a run can fetch its answer.
    async fn running(&mut self) {
        let (one, other) = self.clients;
        let code = "import time\ntime.sleep(6)\n'SEKRET'";
        let begun = one.call("run_code", json!({"language": "python", "code": code})).await;
        let handle = begun["handle"].clone();
        let ask = json!({"handle": handle, "wait_s": 0});
        let theirs = other.call("get_result", ask).await;
        let own = one.call("get_result", json!({"handle": handle, "wait_s": 60})).await;
        let refused = begun["status"] == "running" && theirs["status"] == "error";
        self.row(
            "running execution",
            ensure(refused, format!("{begun} {theirs}")),
            equal(own["value"].clone(), json!("SEKRET")),
        );
        let theirs = other.call("get_result", json!({"handle": begun["handle"]})).await;
        self.row("its answer", equal(theirs["status"].clone(), json!("error")), Ok(()));
    }

    /// Tests skills, first as an unapproved draft and then approved: an AI client with another identity can neither
    /// import nor find them.
    async fn draft(&mut self, lockhouse: &Lockhouse) {
        let (one, other) = self.clients;
        let name = unique_name("secret");
        let named = |code: &str| code.replace("NAME", &name);
        let saved = one.python(&named(DRAFT)).await;
        let (theirs, own) = (other.python(&named(IMPORT)).await, one.python(&named(IMPORT)).await);
        let of = |answer: &Value| answer["value"].as_str().unwrap_or_default().to_owned();
        let control =
            ensure(of(&saved) == "draft" && of(&own).contains("is a draft"), format!("{saved} {own}"));
        let is_one_user = matches!((one, other), (Client::Stdio(_), Client::Stdio(_)));
        // Two processes of one user share that user's drafts: neither can import an unapproved one.
        let refused = match is_one_user {
            true => !of(&theirs).contains("SEKRET"),
            false => !of(&theirs).contains("draft") && of(&theirs).contains("there is no skill"),
        };
        self.row("skill draft", ensure(refused, &theirs), control);
        if is_one_user {
            return;
        }
        let listed: Value =
            serde_json::from_str(&lockhouse.run(&["skills", "list", "--json"]).stdout).unwrap();
        let folder = name.replace('_', "-");
        let row = listed
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == folder.as_str() || row["name"] == name.as_str());
        let client =
            row.and_then(|row| row["client"].as_str()).unwrap_or_else(|| panic!("{listed}")).to_owned();
        let approved = lockhouse.run(&["skills", "approve", &name, "--client", &client, "--yes"]);
        assert_eq!(approved.status, Some(0), "{approved:?}");
        let (theirs, own) = (other.python(&named(IMPORT)).await, one.python(&named(IMPORT)).await);
        self.row(
            "skill",
            ensure(of(&theirs).contains("there is no skill"), &theirs),
            equal(of(&own), "SEKRET".into()),
        );
        let found = |answer: &Value| {
            answer["value"].to_string().contains(&folder) || answer["value"].to_string().contains(&name)
        };
        let (theirs, own) = (other.python(SEARCH).await, one.python(SEARCH).await);
        self.row("skill by search", ensure(!found(&theirs), &theirs), ensure(found(&own), &own));
    }

    /// Tests that no client can read the audit log, which only the operator may read.
    async fn audit(&mut self, lockhouse: &Lockhouse) {
        let (one, other) = self.clients;
        let answer = one.python("'of the one'").await;
        let execution = answer["execution"].as_str().unwrap().to_owned();
        let looks = "from mcp_tools import list_servers, search_tools\nimport mcp_tools\n[str(list_servers()), str(search_tools('audit log records')), sorted(n for n in dir(mcp_tools) if 'audit' in n)]";
        let theirs = other.python(looks).await;
        let found = theirs["value"].to_string();
        let printed = lockhouse.run(&["audit", "show", &execution]);
        let refused = ensure(!found.contains("audit") && !found.contains(&execution), &theirs);
        self.row("audit", refused, ensure(printed.stdout.contains(&execution[..8]), format!("{printed:?}")));
    }
}

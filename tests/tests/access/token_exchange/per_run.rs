//! Tests of `token = "per_run"`: a token that was exchanged is used by one run, and by calls that need the same scopes.

use lockhouse_tests::{Daemon, Table, ensure, equal};
use serde_json::{Value, json};

use super::Service;

const KEYS: &str = "exchange = \"token\"\ntoken = \"per_run\"\noauth = { scopes = [\"base\"] }\n\
    tool_scopes = { look = \"read\", \"ch*\" = \"write read\" }";

impl Service {
    /// Replaces the keys of the server whose tokens are exchanged.
    fn with_keys(self, keys: &str) -> Self {
        let config = self.lockhouse.path("config/lockhouse/config.toml");
        let text = std::fs::read_to_string(config).expect("it");
        self.lockhouse.file("config/lockhouse/config.toml", text.replace("exchange = \"token\"", keys));
        self
    }

    /// Returns the number of each token with which calls came, and its scopes, since the last time.
    fn used(&self) -> Vec<(usize, String)> {
        let tokens = std::mem::take(&mut self.by_token.1.lock().tokens);
        let parts = tokens.iter().map(|token| token.split('~').collect::<Vec<_>>());
        parts.map(|parts| (parts[3].parse().expect("a number"), parts[4].to_owned())).collect()
    }

    /// Returns how many tokens the identity provider has issued.
    fn issued(&self) -> usize {
        self.received.lock().forms.len()
    }
}

async fn run(daemon: &Daemon, token: &str, calls: &[&str]) -> Value {
    let calls: Vec<String> =
        calls.iter().map(|tool| format!("str(call_tool('tokens', '{tool}', {{}}))")).collect();
    let code = format!("from mcp_tools import call_tool\n[{}]", calls.join(", "));
    let answer = daemon.http_client(Some(token)).run_code("python", &code).await;
    if answer["value"].is_null() { answer } else { answer["value"].clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_tokens_of_its_own_with_the_scopes_of_its_calls() {
    let service = Service::new().with_keys(KEYS);
    let daemon = service.daemon().await;
    let (ada, bob) = (service.token_of("ada"), service.token_of("bob"));
    let mut table = Table::new("tokens of runs");
    let (reads, writes) = ("base+read".to_owned(), "base+read+write".to_owned());

    table.row("a run without calls", equal(run(&daemon, &ada, &[]).await, json!([])));
    table.row("its tokens", equal(service.issued(), 0));
    let found = run(&daemon, &ada, &["look", "look", "change", "look"]).await;
    table.row("a run of both tools", equal(found, json!(["ada", "ada", "ada", "ada"])));
    let expected =
        [(1, &reads), (1, &reads), (2, &writes), (1, &reads)].map(|(n, scopes)| (n, scopes.clone()));
    table.row("its tokens", equal(service.used(), expected.to_vec()));
    table.row("the next run", equal(run(&daemon, &ada, &["look"]).await, json!(["ada"])));
    table.row("its token", equal(service.used(), vec![(3, reads.clone())]));

    let both = tokio::join!(run(&daemon, &ada, &["look", "change"]), run(&daemon, &bob, &["look", "change"]));
    table.row("two users", equal(both, (json!(["ada", "ada"]), json!(["bob", "bob"]))));
    let mut used = service.used();
    used.sort();
    let numbers: Vec<usize> = used.iter().map(|(number, _)| *number).collect();
    table.row("their tokens", equal(numbers, vec![4, 5, 6, 7]));
    let both = tokio::join!(run(&daemon, &ada, &["look"]), run(&daemon, &ada, &["look"]));
    table.row("two runs of one user", equal(both, (json!(["ada"]), json!(["ada"]))));
    let mut used = service.used();
    used.sort();
    table.row("their tokens", equal(used, vec![(8, reads.clone()), (9, reads.clone())]));

    let records = service.lockhouse.records();
    let accounts = records.iter().filter(|record| record["event"] == "call");
    let wrong: Vec<&Value> =
        accounts.filter(|record| !record["account"].as_str().is_some_and(|of| of.contains('@'))).collect();
    table.row("records name the user", ensure(wrong.is_empty(), &wrong));
    table.finish();

    // The control: with one token for all runs of a user, two runs use the same.
    let service = Service::new();
    let daemon = service.daemon().await;
    let ada = service.token_of("ada");
    let mut table = Table::new("tokens of users");
    for _ in 0..2 {
        table.row("a run", equal(run(&daemon, &ada, &["look"]).await, json!(["ada"])));
    }
    table.row("their token", equal(service.used(), vec![(1, String::new()), (1, String::new())]));
    table.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_not_permitted_gets_no_token() {
    let service = Service::new().with_keys(KEYS);
    let policy = "version = 1\n[servers.tokens]\nallow = [\"look\"]\n\
                  rules = [{ tool = \"change\", effect = \"allow\", when = { at = \"home\" } }]\n";
    service.lockhouse.file("config/lockhouse/policy.toml", policy);
    let daemon = service.daemon().await;
    let ada = service.token_of("ada");
    let mut table = Table::new("calls that are not permitted");
    let code = "from mcp_tools import call_tool, ToolError\ntry: r = call_tool('tokens', 'change', {'at': 'work'})\n\
                except ToolError as e: r = e.code\nr";
    let denied = daemon.http_client(Some(&ada)).run_code("python", code).await["value"].clone();
    table.row("a denied call", equal(denied, json!("denied")));
    table.row("its tokens", equal(service.issued(), 0));
    table.row("control: a permitted call", equal(run(&daemon, &ada, &["look"]).await, json!(["ada"])));
    table.row("its token", equal(service.used(), vec![(1, "base+read".to_owned())]));
    table.finish();

    for (keys, words) in [
        ("exchange = \"token\"\ntool_scopes = { look = \"read\" }", "token = \"per_run\" with it"),
        ("exchange = \"token\"\ntoken = \"per_call\"", "per_user"),
        (
            "exchange = \"token\"\ntoken = \"per_run\"\ntool_scopes = { look = [\"read\"] }",
            "a table of strings",
        ),
    ] {
        let service = Service::new().with_keys(keys);
        let mut command = service.lockhouse.command(&["server", "list"]);
        command.env("CREDENTIALS_DIRECTORY", service.lockhouse.path("credentials"));
        let output = lockhouse_tests::CommandOutput::run(&mut command, b"");
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(all.contains(words), "{keys}: {all}");
    }
}

//! Tests of `lockhouse policy allow`, `ask` and `deny`, which change the policy file.

use std::os::unix::fs::PermissionsExt;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};
use serde_json::{Value, json};

const POLICY: &str = r#"# Ours.
version = 1

[servers.fixture]          # one server
allow = [
  "count",                 # harmless
  "te*",
]
ask = ["add"]              # sums
deny = ["delete_*", "env"]

[[servers.fixture.rules]]
tool = "fail*"
effect = "deny"
"#;

fn lockhouse() -> Lockhouse {
    Lockhouse::new().server("fixture", &[]).policy(POLICY)
}

fn written(lockhouse: &Lockhouse) -> String {
    std::fs::read_to_string(lockhouse.path("config/lockhouse/policy.toml")).unwrap()
}

/// Runs a program that calls `fixture.add`, and returns the sum, or the code of the error.
fn sum(lockhouse: &Lockhouse) -> Value {
    let code = "from mcp_tools import fixture, ToolError\ntry: r = fixture.add(1, 2)['sum']\nexcept ToolError as e: r = e.code\nr";
    lockhouse.answer("python", code)["value"].clone()
}

#[test]
fn a_change_is_shown_with_its_decision_and_applies_to_programs() {
    let lockhouse = lockhouse();
    let mut table = Table::new("policy allow, ask, deny");
    table.row("control: nobody approves", equal(sum(&lockhouse), json!("approval_declined")));
    let allowed = lockhouse.run(&["policy", "allow", "fixture.add"]);
    insta::assert_snapshot!("allowed", allowed.transcript());
    let expected = POLICY
        .replace("  \"te*\",\n", "  \"te*\",\n  \"add\",\n")
        .replace("ask = [\"add\"]              # sums", "ask = []              # sums");
    table.row("only its lines changed", equal(written(&lockhouse), expected.clone()));
    table.row("allowed", equal(sum(&lockhouse), json!(3)));
    let again = lockhouse.run(&["policy", "allow", "fixture.add"]);
    let unchanged = again.status == Some(0) && again.stdout.contains("needs no change");
    table.row("a second time", ensure(unchanged && written(&lockhouse) == expected, &again));
    let told = lockhouse.run(&["policy", "deny", "fixture.add", "--json"]).json();
    table.row("denied", equal(sum(&lockhouse), json!("denied")));
    let holds = told["changed"] == true
        && told["in_effect"] == true
        && told["decisions"][0]["effect"] == "deny"
        && told["decisions"][0]["deciding"]["line"] == 10
        && told["removed"][0]["pattern"] == "add"
        && told["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("+deny = [\"delete_*\", \"env\", \"add\"]"));
    table.row("as JSON", ensure(holds, &told));
    let asked = lockhouse.run(&["policy", "ask", "fixture.add"]);
    table.row("asked again", equal((asked.status, written(&lockhouse)), (Some(0), POLICY.to_owned())));
    table.row("control: the effect", equal(sum(&lockhouse), json!("approval_declined")));
    table.finish();
}

#[test]
fn an_entry_that_overrides_the_change_is_named_and_nothing_changes() {
    let lockhouse = lockhouse();
    let mut table = Table::new("overridden changes");
    let policy = |line: u32| format!("config/lockhouse/policy.toml:{line}");
    for (arguments, line) in [
        (["allow", "fixture.delete_everything"], 10),
        (["ask", "fixture.delete_all*"], 10),
        (["allow", "fixture.fail"], 13),
    ] {
        let refused = lockhouse.run(&[&["policy"][..], &arguments[..]].concat());
        let told = refused.status == Some(2)
            && refused.stderr.contains("was not changed")
            && refused.stderr.contains(&policy(line))
            && refused.stdout.is_empty();
        table.row(arguments.join(" "), ensure(told && written(&lockhouse) == POLICY, &refused));
    }
    let exact = lockhouse.run(&["policy", "allow", "fixture.env"]);
    let moved = exact.status == Some(0) && written(&lockhouse).contains("deny = [\"delete_*\"]");
    table.row("control: an entry for exactly this tool is removed", ensure(moved, &exact));
    lockhouse.file("home/conditional.toml", "version = 1\n[servers.fixture]\n[[servers.fixture.rules]]\ntool = \"add\"\nwhen = { a = 1 }\neffect = \"allow\"\n");
    let invalid = lockhouse.run(&["policy", "deny", "fixture.add", "--policy", "conditional.toml"]);
    let told = invalid.status == Some(2) && invalid.stderr.contains("can never apply");
    table.row("a rule that would be ineffective", ensure(told, &invalid));
    let text = std::fs::read_to_string(lockhouse.path("home/conditional.toml")).unwrap();
    table.row("and stays", ensure(!text.contains("deny"), text));
    table.finish();
}

#[test]
fn a_dry_run_changes_nothing_and_a_missing_policy_is_created() {
    let mut table = Table::new("dry runs and new policies");
    let existing = lockhouse();
    let dry = existing.run(&["policy", "deny", "fixture.te*", "--dry-run"]);
    let shown = dry.status == Some(0) && dry.stdout.contains("+deny = [") && dry.stdout.contains("dry run");
    table.row("a dry run", ensure(shown && written(&existing) == POLICY, &dry));
    let new = Lockhouse::new().server("fixture", &[]);
    let path = new.path("config/lockhouse/policy.toml");
    let dry = new.run(&["policy", "allow", "fixture.add", "--dry-run"]);
    table.row("a dry run without a policy", ensure(dry.status == Some(0) && !path.exists(), &dry));
    let created = new.run(&["policy", "allow", "fixture.add"]);
    table.row("created", equal(created.status, Some(0)));
    table.row(
        "its text",
        equal(written(&new), "version = 1\n\n[servers.fixture]\nallow = [\"add\"]\n".to_owned()),
    );
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    table.row("private", equal(mode, 0o600));
    table.row("in force", equal(sum(&new), json!(3)));
    let other = new.run(&["policy", "allow", "other.x", "--policy", "named.toml", "--unknown"]);
    let named = std::fs::read_to_string(new.path("home/named.toml")).unwrap_or_default();
    let told = other.stdout.contains("note: no server other is configured");
    table.row("a named file, an unknown server", ensure(told && named.contains("[servers.other]"), &other));
    table.finish();
}

#[test]
fn a_change_that_matches_nothing_is_refused() {
    let lockhouse = lockhouse();
    let mut table = Table::new("names that match nothing");
    let tested = lockhouse.run(&["server", "test", "fixture"]);
    table.row("control: the tools are known", equal(tested.status, Some(0)));
    for (tool, words) in [
        ("fixture.cuont", "fixture had no tool `cuont` when it was last connected; did you mean `count`?"),
        ("fixture.zz*", "fixture had no tool that matches `zz*` when it was last connected"),
        ("fixtrue.count", "no server fixtrue is configured; did you mean `fixture`?"),
        ("other.*", "no server other is configured"),
    ] {
        for effect in ["allow", "ask", "deny"] {
            for dry in [&[][..], &["--dry-run"]] {
                let refused = lockhouse.run(&[&["policy", effect, tool], dry].concat());
                let told = refused.status == Some(2)
                    && refused.stderr.contains(&format!("was not changed: {words}. --unknown "))
                    && refused.stdout.is_empty();
                table.row(
                    format!("{effect} {tool} {dry:?}"),
                    ensure(told && written(&lockhouse) == POLICY, &refused),
                );
            }
        }
        let dry = lockhouse.run(&["policy", "ask", tool, "--unknown", "--dry-run"]);
        let told = dry.status == Some(0) && dry.stdout.contains(&format!("note: {words}"));
        table.row(format!("{tool} that is not there yet"), ensure(told, &dry));
    }
    let known = lockhouse.run(&["policy", "ask", "fixture.count"]);
    table.row("control: a known tool", equal(known.status, Some(0)));
    let all = lockhouse.run(&["policy", "ask", "fixture.te*", "--dry-run"]);
    table.row("control: a prefix", equal(all.status, Some(0)));
    let skill = lockhouse.run(&["policy", "ask", "skills.save", "--dry-run"]);
    table.row("control: a tool of Lockhouse itself", equal(skill.status, Some(0)));
    table.finish();
}

#[test]
fn unknown_tools_and_exceptions_of_a_prefix_are_reported() {
    let lockhouse = lockhouse();
    let mut table = Table::new("known tools");
    let unknown = lockhouse.run(&["policy", "ask", "fixture.cuont", "--dry-run"]);
    table.row("not connected yet", ensure(unknown.stdout.contains("are not known yet"), &unknown));
    let tested = lockhouse.run(&["server", "test", "fixture"]);
    table.row("control: it can be connected", equal(tested.status, Some(0)));
    let all = lockhouse.run(&["policy", "allow", "fixture.*", "--json"]).json();
    let exceptions: Vec<&Value> =
        all["exceptions"].as_array().unwrap().iter().map(|exception| &exception["pattern"]).collect();
    table.row(
        "what a prefix does not change",
        equal(exceptions, vec![&json!("add"), &json!("delete_*"), &json!("env"), &json!("fail*")]),
    );
    let decisions = all["decisions"].as_array().unwrap();
    let effect = |name: &str| {
        decisions.iter().find(|decision| decision["name"] == name).map(|decision| &decision["effect"])
    };
    table.row("a changed tool", equal(effect("echo"), Some(&json!("allow"))));
    table.row("an exception", equal(effect("add"), Some(&json!("ask"))));
    table.row("not everywhere", equal(&all["in_effect"], &json!(false)));
    table.finish();
}

/// A policy that an administrator requires still applies. The file is changed, and a warning names the line that decides.
#[test]
fn a_required_policy_that_still_forbids_the_tool_is_named() {
    let lockhouse = lockhouse();
    let above = lockhouse.file("above.toml", "version = 1\n[servers.fixture]\nallow = [\"count\"]\n");
    lockhouse.file("requirements.toml", format!("policy = {above:?}\n"));
    let run = |arguments: &[&str]| {
        let mut command = lockhouse.command(arguments);
        CommandOutput::run(command.env("LOCKHOUSE_REQUIREMENTS", lockhouse.path("requirements.toml")), b"")
    };
    let mut table = Table::new("below a required policy");
    let told = run(&["policy", "allow", "fixture.add"]);
    let warned = told.status == Some(0)
        && told.stderr.contains("fixture.add still is denied")
        && told.stderr.contains(&format!("{}:3", above.display()))
        && told.stderr.contains("the administrator requires");
    table.row("a warning", ensure(warned, &told));
    table
        .row("the file is changed", ensure(written(&lockhouse).contains("\"add\",\n]"), written(&lockhouse)));
    let told = run(&["policy", "allow", "fixture.add", "--json"]).json();
    let holds = told["in_effect"] == false && told["decisions"][0]["required_by_administrator"] == true;
    table.row("as JSON", ensure(holds, &told));
    let told = run(&["policy", "ask", "fixture.count"]);
    table.row("control: a stricter effect", ensure(!told.stderr.contains("warning"), &told));
    table.finish();
}

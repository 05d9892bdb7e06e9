//! Tests of the commands `lockhouse policy init`, `check` and `explain`, as a user runs them one after the other.

use lockhouse_tests::{Lockhouse, Table, ensure};

use crate::policy::POLICY;

#[test]
fn policy_init_allows_read_only_tools_and_a_run_works() {
    let lockhouse = Lockhouse::new().server("fixture", &[]);
    let program = "from mcp_tools.fixture import add\nadd(a=1, b=2)['sum']";
    assert_eq!(lockhouse.answer("python", program)["error"]["code"], "denied", "control");
    let finished = lockhouse.run(&["policy", "init"]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let path = lockhouse.path("config/lockhouse/policy.toml");
    assert!(finished.stdout.contains(path.to_str().unwrap()), "{finished:?}");
    insta::assert_snapshot!("written_policy", std::fs::read_to_string(&path).unwrap());
    assert_eq!(lockhouse.answer("python", program)["value"], 3);
    let denied = lockhouse.answer("typescript", "await fixture.delete_everything({})");
    assert_eq!(denied["error"]["code"], "denied", "{denied}");
    let checked = lockhouse.run(&["policy", "check"]);
    assert_eq!(checked.status, Some(0), "{checked:?}");
}

#[test]
fn an_existing_policy_is_replaced_only_with_force() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let path = lockhouse.path("config/lockhouse/policy.toml");
    let finished = lockhouse.run(&["policy", "init"]);
    assert_eq!(finished.status, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("--force"), "{finished:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), POLICY);
    let finished = lockhouse.run(&["policy", "init", "--force"]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert_ne!(std::fs::read_to_string(&path).unwrap(), POLICY);
}

#[test]
fn policy_init_can_replace_an_invalid_policy() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy("version = ");
    let finished = lockhouse.run(&["policy", "init", "--force"]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert_eq!(lockhouse.run(&["policy", "check"]).status, Some(0));
}

#[test]
fn without_servers_there_is_nothing_to_write() {
    let lockhouse = Lockhouse::new();
    let finished = lockhouse.run(&["policy", "init"]);
    assert!(finished.status == Some(7) && finished.stderr.contains("--servers"), "{finished:?}");
    assert!(!lockhouse.path("config/lockhouse/policy.toml").exists());
}

#[test]
fn policy_check_reports_contradictions() {
    let policy = "version = 1\n[servers.fixture]\nallow = [\"add\"]\n[servers.gone]\nallow = []\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).server("other", &[]).policy(policy);
    insta::assert_snapshot!("checked_policy", lockhouse.run(&["policy", "check"]).transcript());
}

#[test]
fn policy_explain_names_the_deciding_line() {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(POLICY);
    let mut table = Table::new("explanations");
    let rows: [(&str, &[&str]); 5] = [
        ("fixture.add", &["is allowed", "policy.toml:4", "allow = [\"add\""]),
        ("fixture.text", &["is allowed", "\"te*\"", "policy.toml:4"]),
        ("fixture.delete_everything", &["is denied", "\"delete_*\"", "policy.toml:5"]),
        ("fixture.fail", &["is denied", "policy.toml:4", "hint"]),
        ("other.fail", &["is denied", "[servers.other]"]),
    ];
    for (name, words) in rows {
        let finished = lockhouse.run(&["policy", "explain", name]);
        let told = words.iter().all(|words| finished.stdout.contains(words));
        table.row(name, ensure(told && finished.status == Some(0), finished));
    }
    for name in ["fixture", "a b.c", "fixture.", ".x"] {
        let finished = lockhouse.run(&["policy", "explain", name]);
        table.row(format!("{name:?} is refused"), ensure(finished.status == Some(2), finished));
    }
    let finished = Lockhouse::new().run(&["policy", "explain", "fixture.add"]);
    table.row("no policy", ensure(finished.stdout.contains("policy init"), finished));
    table.finish();
    insta::assert_snapshot!(
        "explained_denial",
        lockhouse.run(&["policy", "explain", "fixture.fail"]).transcript()
    );
}

#[test]
fn policy_explain_applies_the_roles_of_a_person() {
    let roles = "[roles.clerks]\nmembers = [\"desk\", \"group:clerks\"]\nmay = [\"run\"]\n[roles.clerks.servers.fixture]\nallow = [\"text\"]\n";
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(&format!("{POLICY}{roles}"));
    let mut table = Table::new("explanations for people");
    for (person, member, words) in [
        (
            "desk",
            None,
            &["is denied", "[roles.clerks.servers.fixture]", "this person has the roles clerks"][..],
        ),
        ("user:ada", Some("group:clerks"), &["is denied", "[roles.clerks.servers.fixture]"]),
        (
            "user:ada",
            Some("group:clerk"),
            &["is denied", "no role permits this person", "this person has no role"],
        ),
    ] {
        let mut arguments = vec!["policy", "explain", "fixture.add", "--person", person];
        member.into_iter().for_each(|member| arguments.extend(["--member", member]));
        let finished = lockhouse.run(&arguments);
        let told = words.iter().all(|words| finished.stdout.contains(words));
        table.row(format!("{person} {member:?}"), ensure(told && finished.status == Some(0), finished));
    }
    let client = lockhouse.run(&["policy", "explain", "fixture.add", "--client", "desk"]);
    table.row("control: a client over stdio", ensure(client.stdout.contains("is allowed"), client));
    table.finish();
}

//! Tests of a policy that an administrator requires: it applies in addition to the user's policy, and can only restrict
//! it.

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};

const USER_POLICY: &str = "version = 1\n[servers.fixture]\nallow = [\"add\", \"text\"]\n";

/// Returns a Lockhouse test fixture with the administrator's required policy in a file of its own. `requirements` is
/// the text of the requirements file. If it is `None`, the file only contains the path of the required policy.
fn required(policy: &str, requirements: Option<&str>) -> Lockhouse {
    let lockhouse = Lockhouse::new().server("fixture", &[]).policy(USER_POLICY);
    let path = lockhouse.file("required-policy.toml", policy);
    let text = requirements.map_or_else(|| format!("policy = {path:?}\n"), str::to_owned);
    lockhouse.file("requirements.toml", text);
    lockhouse
}

fn run_with_requirements(lockhouse: &Lockhouse, arguments: &[&str], input: &str) -> CommandOutput {
    let mut command = lockhouse.command(arguments);
    command.env("LOCKHOUSE_REQUIREMENTS", lockhouse.path("requirements.toml"));
    CommandOutput::run(&mut command, input.as_bytes())
}

const PROGRAM: &str = "\
from mcp_tools import call_tool, ToolError
def of(tool, **arguments):
    try: call_tool('fixture', tool, arguments); return 'ok'
    except ToolError as error: return f'{error.code}: {error.message}'
[of('add', a=1, b=2), of('text', text='x'), of('count')]
";

#[test]
fn a_required_policy_only_restricts() {
    let rows = [
        (
            "all of it",
            "version = 1\n[servers.fixture]\nallow = [\"*\"]\n",
            ["ok", "ok", "denied"],
            "policy.toml:3",
        ),
        ("a part", "version = 1\n[servers.fixture]\nallow = [\"add\"]\n", ["ok", "denied", "denied"], ""),
        (
            "a denial",
            "version = 1\n[servers.fixture]\nallow = [\"*\"]\ndeny = [\"text\"]\n",
            ["ok", "denied", "denied"],
            "required-policy.toml:4",
        ),
        ("nothing", "version = 1\n", ["denied", "denied", "denied"], "required-policy.toml"),
    ];
    let mut table = Table::new("a required policy above the user's");
    for (name, policy, expected, place) in rows {
        let lockhouse = required(policy, None);
        let finished =
            run_with_requirements(&lockhouse, &["run", "-", "--language", "python", "--json"], PROGRAM);
        let value = finished.json()["value"].clone();
        let told: Vec<String> = value.as_array().into_iter().flatten().map(ToString::to_string).collect();
        let codes: Vec<&str> =
            told.iter().map(|told| told.trim_matches('"').split(':').next().unwrap_or_default()).collect();
        table.row(name, equal(codes, expected.to_vec()));
        table.row(format!("{name}: its place"), ensure(told.iter().any(|told| told.contains(place)), &told));
    }
    let lockhouse = required("version = 1\n[servers.fixture]\nallow = [\"add\"]\n", None);
    let explained = run_with_requirements(&lockhouse, &["policy", "explain", "fixture.text"], "");
    let checked = run_with_requirements(&lockhouse, &["policy", "check"], "");
    let named = checked.status == Some(0) && checked.stdout.contains("restricted by");
    let named = named && checked.stdout.contains("required-policy.toml");
    table.row("policy check", ensure(named, checked));
    table.row("policy explain", ensure(explained.stdout.contains("required-policy.toml:3"), explained));
    table.finish();
}

#[test]
fn an_unusable_required_policy_prevents_the_start() {
    let sound = "version = 1\n[servers.fixture]\nallow = [\"*\"]\n";
    let rows = [
        ("a fault in it", "version = 1\n[servers.fixture]\nalow = []\n", None, "required-policy.toml:3"),
        ("not there", sound, Some("# a line\npolicy = \"/nowhere/policy.toml\"\n"), "requirements.toml:2"),
        ("not absolute", sound, Some("policy = \"policy.toml\"\n"), "requirements.toml:1"),
        ("no path", sound, Some("policy = 3\n"), "requirements.toml:1"),
    ];
    let mut table = Table::new("required policies that cannot be used");
    for (name, policy, requirements, place) in rows {
        let lockhouse = required(policy, requirements);
        for arguments in [&["run", "-", "--language", "python"][..], &["policy", "check"]] {
            let finished = run_with_requirements(&lockhouse, arguments, "1");
            let refused = finished.status == Some(2) && finished.stderr.contains(place);
            table.row(format!("{name}: {arguments:?}"), ensure(refused, finished));
        }
    }
    let lockhouse = required(sound, None);
    let control = run_with_requirements(&lockhouse, &["run", "-", "--language", "python"], "1");
    table.row("control", ensure(control.status == Some(0), &control));
    let mut permissions = std::fs::metadata(lockhouse.path("required-policy.toml")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o666);
    std::fs::set_permissions(lockhouse.path("required-policy.toml"), permissions).unwrap();
    let finished = run_with_requirements(&lockhouse, &["run", "-", "--language", "python"], "1");
    let refused = finished.status == Some(2) && finished.stderr.contains("can be written by others");
    table.row("that anybody can write", ensure(refused, finished));
    table.finish();
}

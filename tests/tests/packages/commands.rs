//! Tests of `lockhouse python` with a folder of wheels that a test writes, so that no network is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure, equal};

/// A Python program that writes a wheel: `sys.argv` has the folder, the name, the version, the source and the requirements.
const WRITE_WHEEL: &str = r#"
import base64, hashlib, sys, zipfile
folder, name, version, source, *requires = sys.argv[1:]
info = f"{name}-{version}.dist-info"
files = {
    f"{name}.py": source,
    f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {it}\n" for it in requires),
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = ""
for path, text in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    record += f"{path},sha256={digest},{len(text)}\n"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    for path, text in files.items():
        wheel.writestr(path, text)
    wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
"#;

fn write_wheel(folder: &Path, words: &[&str]) {
    let mut command = Command::new("/usr/bin/python3");
    let written = CommandOutput::run(command.args(["-c", WRITE_WHEEL]).arg(folder).args(words), b"");
    assert_eq!(written.status, Some(0), "{written:?}");
}

pub(super) struct Site {
    pub(super) lockhouse: Lockhouse,
    pub(super) wheels: PathBuf,
}

impl Site {
    pub(super) fn new(config: &str) -> Self {
        let lockhouse = Lockhouse::new().config(config);
        let wheels = lockhouse.path("wheels");
        std::fs::create_dir_all(&wheels).unwrap();
        write_wheel(
            &wheels,
            &["hello_data", "1.0", "import base_data\nvalue = base_data.value + 1\n", "base-data"],
        );
        write_wheel(&wheels, &["base_data", "1.0", "value = 41\n"]);
        write_wheel(&wheels, &["broken_data", "1.0", "import nothing_that_exists\n"]);
        Self { lockhouse, wheels }
    }

    /// Runs `lockhouse python` with pip, which finds packages only in the folder of wheels.
    fn python(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::run(&mut self.command(arguments), b"")
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.lockhouse.command(&[&["python"], arguments].concat());
        command.env("PATH", "/usr/bin:/bin").env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", &self.wheels);
        command
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.lockhouse.path("config/lockhouse/config.toml")).unwrap()
    }
}

#[test]
fn packages_are_installed_locked_used_and_removed() {
    let site = Site::new("# mine\n[python] # Python\n# for reports\npackages = []\n");
    let mut table = Table::new("lockhouse python");
    let added = site.python(&["add", "hello-data"]);
    let is_added = added.status == Some(0) && added.stdout.contains("added hello-data");
    table.row("add", ensure(is_added, &added));
    table.row("it reports the memory", ensure(added.stdout.contains("MB"), &added));
    let config = site.config();
    let has_comments = ["# mine", "# Python", "# for reports", "packages = [\"hello-data\"]"];
    table.row("comments are kept", ensure(has_comments.iter().all(|part| config.contains(part)), &config));
    let answer = site.lockhouse.answer("python", "import hello_data\nhello_data.value");
    table.row("a program imports it", ensure(answer["value"] == 42, &answer));
    let lock =
        std::fs::read_to_string(site.lockhouse.path("state/lockhouse/python/requirements.lock")).unwrap();
    let is_locked = lock.contains("base_data==1.0") && lock.matches("--hash=sha256:").count() == 2;
    table.row("the lock file has hashes, also of what it requires", ensure(is_locked, &lock));
    let listed = site.python(&["list", "--json"]);
    table.row("list", ensure(listed.json()["packages"][0]["version"] == "1.0", &listed));
    let checked = site.python(&["check"]);
    table.row("check", ensure(checked.status == Some(0) && checked.stdout.contains("hello-data"), &checked));
    let doctor = site.lockhouse.run(&["doctor", "--json"]);
    table.row("doctor", ensure(doctor.json()["packages"]["packages"][0]["name"] == "hello-data", &doctor));

    write_wheel(&site.wheels, &["base_data", "2.0", "value = 99\n"]);
    let locked = site.python(&["lock"]);
    let answer = site.lockhouse.answer("python", "import hello_data\nhello_data.value");
    table.row(
        "lock keeps versions",
        ensure(locked.status == Some(0) && answer["value"] == 42, (&locked, &answer)),
    );
    let upgraded = site.python(&["lock", "--upgrade"]);
    let answer = site.lockhouse.answer("python", "import hello_data\nhello_data.value");
    table.row(
        "lock --upgrade",
        ensure(upgraded.status == Some(0) && answer["value"] == 100, (&upgraded, &answer)),
    );
    let environments = std::fs::read_dir(site.lockhouse.path("state/lockhouse/python")).unwrap().count();
    table.row("earlier environments are deleted", ensure(environments == 3, environments));

    let site_packages = site.lockhouse.path("state/lockhouse/python/current");
    let module = super::environments::site_packages(&site_packages).join("base_data-2.0.dist-info");
    std::fs::rename(&module, module.with_file_name("base_data-3.0.dist-info")).unwrap();
    let checked = site.python(&["check"]);
    let is_found =
        checked.status == Some(7) && checked.stderr.contains("base_data is 3.0 in the environment, and 2.0");
    table.row("check finds a difference", ensure(is_found, &checked));

    let removed = site.python(&["remove", "Hello_Data"]);
    let is_removed = removed.status == Some(0) && site.config().contains("packages = []");
    table.row("remove", ensure(is_removed, (&removed, site.config())));
    let answer = site.lockhouse.answer("python", "import hello_data");
    table.row("a program no longer imports it", ensure(answer["status"] == "error", &answer));
    let records = site.lockhouse.records().into_iter();
    let actions: Vec<String> = records
        .filter(|record| record["target"] == "packages")
        .map(|record| format!("{} {}", record["action"], record["outcome"]).replace('"', ""))
        .collect();
    let expected =
        ["add hello-data changed", "lock changed", "lock --upgrade changed", "remove Hello_Data changed"];
    table.row("each change is recorded", equal(actions, expected.map(str::to_owned).to_vec()));
    table.finish();
}

/// Returns a command of `lockhouse python` that runs in a mount namespace in which a folder is read-only.
fn with_read_only_folder(site: &Site, folder: &Path, arguments: &[&str]) -> Command {
    const MOUNT: &str = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@""#;
    let inner = site.command(arguments);
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "sh", "-c", MOUNT]).arg(folder).arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// The environment is neither built nor changed, so that programs import what the configuration says.
#[test]
fn a_configuration_that_cannot_be_changed_leaves_the_environment_as_it_is() {
    let site = Site::new("");
    assert_eq!(site.python(&["add", "base-data"]).status, Some(0));
    let state = site.lockhouse.path("state/lockhouse/python");
    let seen = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&state).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        (names, std::fs::read_to_string(state.join("requirements.lock")).unwrap(), site.config())
    };
    let before = seen();
    let mut table = Table::new("a read-only configuration");
    for arguments in [&["add", "hello-data"], &["remove", "base-data"]] {
        let folder = site.lockhouse.path("config/lockhouse");
        let failed = CommandOutput::run(&mut with_read_only_folder(&site, &folder, arguments), b"");
        let says_why = failed.status == Some(2) && failed.stderr.contains("Read-only file system");
        table.row(format!("{arguments:?}: it fails"), ensure(says_why, &failed));
        table.row(
            format!("{arguments:?}: nothing is built"),
            ensure(!failed.stderr.contains("installing"), &failed),
        );
        table.row(format!("{arguments:?}: nothing is changed"), equal(seen(), before.clone()));
    }
    let added = site.python(&["add", "hello-data"]);
    table.row("control: it can be changed", ensure(added.status == Some(0) && seen() != before, &added));
    table.finish();
}

#[test]
fn a_failed_command_changes_nothing() {
    let site = Site::new("");
    let mut table = Table::new("errors of lockhouse python");
    assert_eq!(site.python(&["add", "base-data"]).status, Some(0));
    let before = site.config();
    write_wheel(&site.wheels, &["picky_data", "1.0", "", "base-data>=7"]);
    for (arguments, status, words) in [
        (&["add", "no-such-data"][..], 7, "Check the spelling"),
        (&["add", "picky-data"], 7, ""),
        (&["add", "broken-data"], 7, "[python] packages: 'broken-data' cannot be imported"),
        (&["add", "requests"], 2, "add an MCP server whose tools make the requests"),
        (&["add", "numba"], 2, "cannot generate machine code"),
        (&["add", "--", "--index-url=http://127.0.0.1"], 2, "no name of a Python package"),
        (&["add", "https://127.0.0.1/a.whl"], 2, "no name of a Python package"),
        (&["remove", "pandas"], 2, "is not a configured package"),
    ] {
        let failed = site.python(arguments);
        let is_right =
            failed.status == Some(status) && failed.stderr.contains(words) && site.config() == before;
        table.row(format!("{arguments:?}"), ensure(is_right, &failed));
    }
    let mut offline = site.lockhouse.command(&["python", "add", "six"]);
    offline
        .env("PATH", "/usr/bin:/bin")
        .env("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        .env("PIP_RETRIES", "1");
    let offline = CommandOutput::run(&mut offline, b"");
    table.row("no network", ensure(offline.stderr.contains("the package index cannot be reached"), &offline));
    let answer = site.lockhouse.answer("python", "import base_data\nbase_data.value");
    table.row("the packages of before still work", ensure(answer["value"] == 41, &answer));
    let directory = std::fs::read_dir(site.lockhouse.path("state/lockhouse/python")).unwrap();
    let environments =
        directory.filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with("environment-"));
    table.row("nothing is left behind", ensure(environments.count() == 1, ""));

    let external = Site::new("[python]\nenvironment = \"/opt/analysis\"\n").python(&["add", "base-data"]);
    let is_refused =
        external.status == Some(7) && external.stderr.contains("which this command does not change");
    table.row("an environment of the user's own", ensure(is_refused, &external));
    let old = Site::new("[python]\ninterpreter = \"/nowhere/python3\"\n").python(&["add", "base-data"]);
    table.row("no interpreter", ensure(old.stderr.contains("cannot find python3"), &old));
    table.finish();
}

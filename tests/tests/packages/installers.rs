//! Tests of what the installers of `lockhouse python` obey: the settings of the user and the variables that the documentation
//! names, nothing in the current directory or above it, and nothing that runs code of a package.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockhouse_tests::{CommandOutput, Lockhouse, Table, ensure};

use super::commands::Site;

/// A Python program that writes a newer version of `hello_data` as source code, whose build leaves a mark: `sys.argv` has
/// the folder and the path of the mark.
const WRITE_SOURCE: &str = r#"
import io, sys, tarfile
folder, mark = sys.argv[1:]
files = {
    "PKG-INFO": "Metadata-Version: 2.1\nName: hello_data\nVersion: 9.0\n",
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": f"open({mark!r}, 'w').write('built')\ndef build_wheel(*_): raise SystemExit(1)\n",
}
with tarfile.open(f"{folder}/hello_data-9.0.tar.gz", "w:gz") as archive:
    for name, text in files.items():
        entry = tarfile.TarInfo(f"hello_data-9.0/{name}")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
"#;

fn write_source(folder: &Path, mark: &Path) {
    let mut command = Command::new("/usr/bin/python3");
    let written = CommandOutput::run(command.args(["-c", WRITE_SOURCE]).arg(folder).arg(mark), b"");
    assert_eq!(written.status, Some(0), "{written:?}");
}

/// Puts settings of installers into a folder, as a repository might have them, and returns the folder.
fn hostile_folder(lockhouse: &Lockhouse) -> PathBuf {
    let dead = "http://127.0.0.1:9/simple";
    let settings = format!("index-url = {dead:?}\nno-binary-package = [\"hello-data\"]\n");
    lockhouse.file("home/project/uv.toml", &settings);
    lockhouse.file("home/project/pyproject.toml", format!("[tool.uv]\n{settings}"));
    lockhouse.file("home/project/pip.conf", format!("[global]\nindex-url = {dead}\nno-binary = :all:\n"));
    lockhouse.file("home/project/setup.cfg", "[install]\nprefix = /nowhere\n");
    lockhouse.file("home/project/pip.py", "raise SystemExit('planted')");
    lockhouse.file("home/project/deep/empty", "");
    lockhouse.path("home/project/deep")
}

#[test]
fn pip_obeys_nothing_in_the_current_directory_and_builds_nothing() {
    let site = Site::new("");
    let mark = site.lockhouse.path("mark");
    write_source(&site.wheels, &mark);
    let folder = hostile_folder(&site.lockhouse);
    let mut table = Table::new("lockhouse python add with pip");
    for directory in [folder.as_path(), folder.parent().unwrap()] {
        let mut command = site.command(&["add", "hello-data"]);
        command.current_dir(directory).env("PIP_NO_BINARY", "hello-data");
        let added = CommandOutput::run(&mut command, b"");
        table.row(format!("{directory:?}: added"), ensure(added.status == Some(0), &added));
        let places = format!("packages come from {}", site.wheels.display());
        table.row("it says where from", ensure(added.stderr.contains(&places), &added));
        table.row("nothing is built", ensure(!mark.exists(), &added));
    }
    let mut control = Command::new(site.lockhouse.path("state/lockhouse/python/current/bin/python"));
    control.args(["-m", "pip", "download", "--no-index", "--no-binary", ":all:", "--dest", "/tmp"]);
    let control = CommandOutput::run(control.arg("--find-links").arg(&site.wheels).arg("hello-data"), b"");
    table.row("control: a build leaves a mark", ensure(mark.exists(), &control));
    table.finish();
}

/// A package index over HTTP, which ends with the test.
struct Mirror {
    process: Child,
    url: String,
}

impl Mirror {
    /// Serves the packages of a folder.
    fn start(lockhouse: &Lockhouse, packages: &Path) -> Self {
        for file in std::fs::read_dir(packages).unwrap().map(|entry| entry.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let package = name.split_once('-').unwrap().0.replace('_', "-");
            lockhouse.file(&format!("mirror/simple/{package}/{name}"), std::fs::read(&file).unwrap());
        }
        let mut server = Command::new("/usr/bin/python3");
        server.args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]);
        server.current_dir(lockhouse.path("mirror")).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = server.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split("port ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a port");
        Self { url: format!("http://127.0.0.1:{port}/simple"), process }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
    }
}

#[test]
fn uv_obeys_the_users_settings_and_nothing_in_the_current_directory() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(folder_of_uv) = std::env::split_paths(&path).find(|folder| folder.join("uv").is_file()) else {
        return println!("skipped: uv is not in PATH");
    };
    let mut table = Table::new("lockhouse python add with uv");
    for (what, settings, variable) in [
        ("a mirror in the user's settings", true, None),
        ("a mirror in UV_DEFAULT_INDEX", false, Some("UV_DEFAULT_INDEX")),
    ] {
        let site = Site::new("");
        let mark = site.lockhouse.path("mark");
        write_source(&site.wheels, &mark);
        let mirror = Mirror::start(&site.lockhouse, &site.wheels);
        if settings {
            site.lockhouse.file("config/uv/uv.toml", format!("index-url = {:?}\n", mirror.url));
        }
        let mut command = site.command(&["add", "hello-data"]);
        command.current_dir(hostile_folder(&site.lockhouse));
        command.env("PATH", format!("{}:/usr/bin:/bin", folder_of_uv.display()));
        command.env("UV_NO_BINARY_PACKAGE", "hello-data");
        if let Some(variable) = variable {
            command.env(variable, &mirror.url);
        }
        let added = CommandOutput::run(&mut command, b"");
        table.row(
            format!("{what}: added with uv"),
            ensure(added.status == Some(0) && added.stderr.contains("with uv"), &added),
        );
        let told = added.stderr.contains(&format!("packages come from {}", mirror.url));
        table.row(format!("{what}: it says where from"), ensure(told, &added));
        table.row(format!("{what}: nothing is built"), ensure(!mark.exists(), &added));
        let lock = site.lockhouse.path("state/lockhouse/python/requirements.lock");
        let lock = std::fs::read_to_string(lock).unwrap_or_default();
        table.row(format!("{what}: the wheel is locked"), ensure(lock.contains("hello-data==1.0"), &lock));
        if settings {
            let own = format!("index-url = {:?}\nno-binary-package = [\"hello-data\"]\n", mirror.url);
            let own = site.lockhouse.file("config/uv/uv.toml", own);
            let refused = CommandOutput::run(&mut command_like(&command, "lock", "--upgrade"), b"");
            let says =
                refused.stderr.contains(&format!("{} has the setting no-binary-package", own.display()));
            table.row("settings that build are refused", ensure(refused.status == Some(7) && says, &refused));
            let mut control = Command::new(folder_of_uv.join("uv"));
            control.args(["pip", "compile", "--only-binary", ":all:", "--python", "/usr/bin/python3", "-"]);
            control.env("XDG_CONFIG_HOME", site.lockhouse.path("config")).current_dir("/");
            let control = CommandOutput::run(&mut control, b"hello-data");
            table.row("control: with them, a build leaves a mark", ensure(mark.exists(), &control));
        }
    }
    table.finish();
}

/// Returns a command with the environment and directory of another one, and these arguments of `lockhouse python`.
fn command_like(other: &Command, name: &str, argument: &str) -> Command {
    let mut command = Command::new(other.get_program());
    command.args(["python", name, argument]).env_clear();
    command.envs(other.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(other.get_current_dir().expect("a directory"));
    command
}

//! The files that the command of an upstream server executes: who changes them decides what runs at the next start,
//! outside of the worker's sandbox.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lockhouse_upstream::{Endpoint, ServerCommand, ServerDefinition, program_files};

/// Endings of names that an interpreter adds to that of a script, or looks for.
const SCRIPTS: [&str; 9] = ["cjs", "js", "json", "mjs", "mts", "py", "sh", "ts", "tsx"];
/// Endings of the names of files that are data. Other files in arguments may be scripts.
const DATA: [&str; 18] = [
    "csv", "db", "db3", "duckdb", "gif", "jpeg", "jpg", "jsonl", "log", "md", "parquet", "pdf", "png",
    "sqlite", "sqlite3", "tsv", "txt", "xlsx",
];
/// Files of a folder that an interpreter runs, or that say which one it runs, if it gets the folder.
const OF_FOLDERS: [&str; 11] = [
    "__main__.py",
    "index.cjs",
    "index.js",
    "index.mjs",
    "index.ts",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    // Python imports these two from each folder of PYTHONPATH before the script runs.
    "sitecustomize.py",
    "usercustomize.py",
];
/// Programs that run the file that is their first argument, whatever its name.
const INTERPRETERS: [&str; 16] = [
    "bash", "bun", "dash", "deno", "fish", "ksh", "lua", "node", "nodejs", "perl", "php", "pypy", "python",
    "ruby", "sh", "zsh",
];

/// Returns the program of a server, its interpreters, and the files in its arguments and variables that may be scripts,
/// also those that do not exist yet. Modules that these import are not known.
pub(super) fn server_programs(definition: &ServerDefinition) -> Vec<PathBuf> {
    let Endpoint::Stdio(command) = &definition.endpoint else { return Vec::new() };
    let mut programs = program_files(command, std::env::var_os("PATH").as_deref());
    programs.extend(scripts(command));
    programs
}

/// Returns the files that may be scripts. A path may be relative to the server's directory, or to one in the arguments, as
/// for `uv --directory DIR run SCRIPT`.
fn scripts(command: &ServerCommand) -> BTreeSet<PathBuf> {
    let own = command.directory.clone().unwrap_or_default();
    let line = std::iter::once(&command.program).chain(&command.arguments);
    let line: Vec<String> = line.map(|text| with_home(text)).collect();
    let values: Vec<String> = command.environment.values().map(|text| with_home(text)).collect();
    let words: BTreeSet<&str> = line[1..].iter().chain(&values).flat_map(|text| words(text)).collect();
    let folders: Vec<PathBuf> =
        words.iter().map(|word| own.join(word)).filter(|path| path.is_dir()).collect();
    let interpreted = interpreted(&line);
    let mut found = BTreeSet::new();
    for base in std::iter::once(&own).chain(&folders) {
        for word in &words {
            let path = base.join(word);
            if path.is_dir() {
                found.extend(OF_FOLDERS.map(|name| path.join(name)));
            } else if is_script(word, &path) || interpreted.contains(word) {
                found.insert(path.clone());
                found.extend(SCRIPTS.map(|ending| with_ending(&path, ending)));
            }
        }
        found.extend(modules(command).flat_map(|module| {
            let path = base.join(module.replace('.', "/"));
            [with_ending(&path, "py"), path.join("__main__.py"), path.join("__init__.py")]
        }));
    }
    found
}

/// Replaces the home directory as shells do.
fn with_home(text: &str) -> String {
    let Some(home) = std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok()) else {
        return text.to_owned();
    };
    let text = text.replace("$HOME/", &format!("{home}/")).replace("${HOME}/", &format!("{home}/"));
    let mut replaced = String::new();
    for part in text.split_inclusive("~/") {
        let before = part.strip_suffix("~/").unwrap_or(part);
        let begins_word =
            before.chars().next_back().is_none_or(|last| !last.is_alphanumeric() && last != '/');
        let is_home = begins_word && before.len() < part.len();
        replaced.push_str(before);
        replaced.push_str(&if is_home { format!("{home}/") } else { part[before.len()..].to_owned() });
    }
    replaced
}

/// Returns the parts of an argument or variable that may be paths: values of options, and words of command lines.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let separates = |letter: char| letter.is_whitespace() || "'\"`;&|()<>=,:".contains(letter);
    let value = text.split_once('=').map(|(_, value)| value);
    // A quoted path may have spaces in it.
    let quoted = text.split(['\'', '"']);
    let parts = text.split(separates).chain(quoted).chain(value);
    let paths = std::iter::once(text).chain(parts).map(|part| part.strip_prefix("file://").unwrap_or(part));
    paths.filter(|part| !part.is_empty() && !part.starts_with('-'))
}

/// Returns the words after the name of an interpreter, up to the first one that may be a file: it is the script, also if its
/// ending is that of data.
fn interpreted(texts: &[String]) -> BTreeSet<&str> {
    let separates = |letter: char| letter.is_whitespace() || "'\"`;&|()<>".contains(letter);
    let words: Vec<&str> =
        texts.iter().flat_map(|text| text.split(separates)).filter(|word| !word.is_empty()).collect();
    let is_interpreter = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        INTERPRETERS.contains(
            &name.trim_end_matches(|letter: char| letter.is_ascii_digit() || ".tdw-".contains(letter)),
        ) || INTERPRETERS.contains(&name)
    };
    let mut found = BTreeSet::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| is_interpreter(word)) {
        for word in &words[at + 1..] {
            // What follows `-c`, `-lc` or `-mNAME` is no file. A package such as `npm:x` is none either.
            let options = word.strip_prefix('-').filter(|options| !options.starts_with('-'));
            if options.is_some_and(|options| options.contains(['c', 'e', 'm'])) {
                break;
            }
            found.extend(Some(*word).filter(|word| !word.starts_with('-')));
            if !word.starts_with('-') && word.contains(['/', '.', ':']) {
                break;
            }
        }
    }
    found
}

/// Returns the modules that Python runs (`-m`).
fn modules(command: &ServerCommand) -> impl Iterator<Item = &str> {
    let after =
        command.arguments.windows(2).filter(|pair| pair[0].starts_with('-') && pair[0].ends_with('m'));
    let attached = command.arguments.iter().filter_map(|argument| argument.strip_prefix("-m"));
    after.map(|pair| pair[1].as_str()).chain(attached).filter(|module| !module.is_empty())
}

/// Whether a file may be a script: it is executable, or its ending is not that of data. A file that does not exist is one
/// if the word looks like a path.
fn is_script(word: &str, path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_data = DATA.contains(&&*ending.to_ascii_lowercase());
    match std::fs::metadata(path) {
        Ok(found) => found.is_file() && (!is_data || found.permissions().mode() & 0o111 != 0),
        Err(_) => !is_data && (word.contains('/') || SCRIPTS.contains(&ending)),
    }
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use lockhouse_upstream::ServerLimits;

    use super::*;

    fn found(arguments: Vec<String>, directory: Option<PathBuf>) -> Vec<PathBuf> {
        let command =
            ServerCommand { program: "/bin/sh".into(), arguments, directory, ..ServerCommand::default() };
        server_programs(&ServerDefinition::new(
            Endpoint::Stdio(command),
            ServerLimits::default(),
            String::new(),
        ))
    }

    #[test]
    fn programs_and_scripts_are_found_and_data_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("src")).expect("a folder");
        for name in ["server.py", "src/main.ts", "data.db"] {
            std::fs::write(path(name), "").expect("a file");
        }
        let folder = directory.path().display().to_string();
        std::fs::write(path("noext"), "").expect("a file");
        let of = |name: &str| format!("{folder}/{name}");
        for (arguments, directory, script, is_reserved) in [
            (vec![of("server.py")], None, "server.py", true),
            (vec!["server.py".into()], Some(directory.path().into()), "server.py", true),
            (
                vec!["--directory".into(), folder.clone(), "run".into(), "src/main.ts".into()],
                None,
                "src/main.ts",
                true,
            ),
            (vec![format!("--script={folder}/server.py")], None, "server.py", true),
            (vec![of("noext")], None, "noext", true),
            (vec![of("late.py")], None, "late.py", true),
            (vec![of("server")], None, "server.js", true),
            (vec![of("src")], None, "src/index.js", true),
            (vec!["-c".into(), format!("exec node {folder}/text.js")], None, "text.js", true),
            (vec![format!("--import=file://{folder}/pre.mjs")], None, "pre.mjs", true),
            (vec!["-m".into(), "mod.sub".into()], Some(directory.path().into()), "mod/sub.py", true),
            (vec!["-m".into(), "mod".into()], Some(directory.path().into()), "mod/__main__.py", true),
            (vec![of("app.zip")], None, "app.zip", true),
            (vec![of("run.txt")], None, "run.txt", true),
            (vec!["-c".into(), format!("python3.12 -X utf8 {folder}/run.txt")], None, "run.txt", true),
            (vec!["-cp".into(), format!("/a.jar:{folder}/b.jar")], None, "b.jar", true),
            (vec![format!("-javaagent:{folder}/agent.jar")], None, "agent.jar", true),
            (vec![folder.clone()], None, "sitecustomize.py", true),
            (vec![of("srv-1.0.tar.gz")], None, "srv-1.0.tar.gz", true),
            (
                vec!["-c".into(), format!("exec python3 '{folder}/my srv/run.py'")],
                None,
                "my srv/run.py",
                true,
            ),
            (vec![of("eq=x.py")], None, "eq=x.py", true),
            (vec!["-lc".into(), format!("uvx server --db {folder}/data.db")], None, "data.db", false),
            (vec!["-c".into(), format!("deno -A npm:notes {folder}/data.db")], None, "data.db", false),
            (vec!["-c".into(), format!("python3 -um server --db {folder}/data.db")], None, "data.db", false),
            (vec![of("server.py"), of("data.db")], None, "data.db", false),
            (vec!["-c".into(), format!("serve {folder}/run.txt")], None, "run.txt", false),
            (vec![folder.clone()], None, "notes.txt", false),
            (vec!["-y".into(), "server-name".into()], None, "server-name", false),
        ] {
            let found = found(arguments.clone(), directory);
            assert!(found.contains(&"/bin/sh".into()), "{arguments:?}: {found:?}");
            assert_eq!(found.contains(&path(script)), is_reserved, "{arguments:?}: {script}: {found:?}");
        }
    }
}

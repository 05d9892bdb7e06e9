//! Finds the files that the kernel opens to execute an upstream server's program: the program file itself and its
//! interpreters.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::definition::ServerCommand;

/// Maximum nesting of scripts whose interpreter is itself a script. The kernel has the same limit.
const INTERPRETERS_MAX: usize = 5;
/// Number of bytes at the start of a script in which the kernel looks for the interpreter.
const FIRST_LINE_BYTES_MAX: u64 = 256;

/// The program of an upstream server: its file, and the files of its interpreters.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    interpreters: Vec<PathBuf>,
}

impl Program {
    /// Finds a program and its interpreters; `None` if there is no such program. A name without a slash is searched in
    /// `PATH`, as exec does.
    pub(super) fn find(name: &OsStr) -> Option<Self> {
        Self::find_in(name, std::env::var_os("PATH").as_deref())
    }

    /// Finds a program as [`Self::find`] does, with another value of `PATH`.
    pub(super) fn find_in(name: &OsStr, search_path: Option<&OsStr>) -> Option<Self> {
        let path = find(name, search_path)?;
        let mut interpreters = Vec::new();
        let mut script = path.clone();
        for _ in 0..INTERPRETERS_MAX {
            let Some((kernel_runs, it_runs)) = interpreter(&script, search_path) else { break };
            interpreters.extend([Some(kernel_runs.clone()), it_runs.clone()].into_iter().flatten());
            script = it_runs.unwrap_or(kernel_runs);
        }
        Some(Self { path, interpreters })
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.path.as_path()).chain(self.interpreters.iter().map(PathBuf::as_path))
    }
}

/// Returns the files that the kernel opens to execute the program of a server: the program and its interpreters, as far
/// as they can be found. Other programs that these start are not among them. A name without a slash is searched in
/// `search_path`, or in `PATH` of the server's own environment, as exec does in the server's directory.
pub fn program_files(command: &ServerCommand, search_path: Option<&OsStr>) -> Vec<PathBuf> {
    let directory = command.directory.clone().unwrap_or_default();
    let path = command.environment.get("PATH").map(OsStr::new).or(search_path);
    let folders = path.into_iter().flat_map(std::env::split_paths).map(|folder| directory.join(folder));
    let path = std::env::join_paths(folders).unwrap_or_default();
    let name = match command.program.contains('/') {
        true => directory.join(&command.program).into_os_string(),
        false => command.program.clone().into(),
    };
    let program = Program::find_in(&name, Some(&path));
    program.iter().flat_map(Program::files).map(Path::to_owned).collect()
}

fn find(name: &OsStr, search_path: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let is_program = |path: &PathBuf| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    std::env::split_paths(search_path?).map(|directory| directory.join(name)).find(is_program)
}

/// Returns the interpreter that the first line of a script names. If it is `env`, also returns the program that `env`
/// runs. Returns `None` if the file is no script.
fn interpreter(script: &Path, search_path: Option<&OsStr>) -> Option<(PathBuf, Option<PathBuf>)> {
    let mut start = Vec::new();
    if !script.is_file() {
        return None;
    }
    std::fs::File::open(script).ok()?.take(FIRST_LINE_BYTES_MAX).read_to_end(&mut start).ok()?;
    let words = words(&start)?;
    let (interpreter, rest) = words.split_first()?;
    let interpreter = PathBuf::from(interpreter);
    let is_env = interpreter.file_name().is_some_and(|name| name == "env");
    let of_env = |word: &&OsString| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    let it_runs =
        if is_env { rest.iter().find(of_env).and_then(|name| find(name, search_path)) } else { None };
    Some((interpreter, it_runs))
}

/// Returns the words after `#!` in the first line of a script; `None` if the file does not begin with `#!`.
fn words(start: &[u8]) -> Option<Vec<OsString>> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    Some(words.map(|word| OsStr::from_bytes(word).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreters_of_a_script_are_found_whichever_way_they_are_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let shell = find(OsStr::new("sh"), std::env::var_os("PATH").as_deref()).expect("a shell");
        let (sh, env) = (shell.as_path(), Path::new("/usr/bin/env"));
        let inner = directory.path().join("inner");
        std::fs::write(&inner, "#! /bin/sh -e\n").expect("a file");
        for (line, expected) in [
            (format!("#!{}\n", sh.display()), vec![sh]),
            ("#!/usr/bin/env sh\n".into(), vec![env, sh]),
            ("#!/usr/bin/env -S A=b sh -x".into(), vec![env, sh]),
            (format!("#!{} x", inner.display()), vec![&inner, Path::new("/bin/sh")]),
            ("\u{7f}ELF".into(), vec![]),
            ("#!".into(), vec![]),
        ] {
            let script = directory.path().join("script");
            std::fs::write(&script, &line).expect("a file");
            let program = Program::find(script.as_os_str()).expect("a program");
            assert_eq!(program.files().skip(1).collect::<Vec<_>>(), expected, "{line}");
        }
    }
}

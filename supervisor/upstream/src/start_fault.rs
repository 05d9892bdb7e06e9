//! Explains why the process of a server cannot be started. The kernel says "No such file or directory" of the program also if
//! its directory or its interpreter is missing.

use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::confine::program_files;
use crate::definition::ServerCommand;

/// Number of bytes of a script's first line that the kernel reads.
const FIRST_LINE_BYTES_MAX: usize = 256;

/// Why a server's command cannot be executed, with what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotExecutable(String);

/// Returns the file that a server's command executes.
///
/// # Errors
/// The command cannot be executed.
pub fn find_program(command: &ServerCommand) -> Result<PathBuf, NotExecutable> {
    let file = missing(command).map_or_else(|| Ok(found(command)), |reason| Err(NotExecutable(reason)))?;
    let is_executable = |file: &PathBuf| file.is_file() && access(file, AccessFlags::X_OK).is_ok();
    file.filter(is_executable).ok_or_else(|| {
        let reason = refused(command);
        NotExecutable(reason.unwrap_or_else(|| format!("{:?} is not an executable file", command.program)))
    })
}

/// Returns why a command could not be executed, with what to do, if `error` says that something is missing; otherwise the
/// error.
pub(super) fn explain(command: &ServerCommand, error: &io::Error) -> String {
    let reason = match error.kind() {
        io::ErrorKind::NotFound => missing(command),
        io::ErrorKind::PermissionDenied => refused(command),
        _ if error.raw_os_error() == Some(nix::libc::ENOEXEC) => found(command).map(|file| {
            format!(
                "{} is no program of this machine: the first line of a script names its interpreter, as in \
                 `#!/usr/bin/env python3`, and a binary must be one for this processor",
                file.display()
            )
        }),
        _ => None,
    };
    format!("cannot start {:?}: {}", command.program, reason.unwrap_or_else(|| error.to_string()))
}

pub(super) fn missing(command: &ServerCommand) -> Option<String> {
    if let Some(directory) = command.directory.as_deref().filter(|directory| !directory.is_dir()) {
        return Some(format!("its cwd {} is no directory: create it, or correct `cwd`", directory.display()));
    }
    let Some(program) = found(command) else {
        return Some(match command.program.split_once(char::is_whitespace) {
            Some((first, rest)) => format!(
                "there is no program of this name. `command` is the program alone: command = {first:?}, args = {:?}",
                rest.split_whitespace().collect::<Vec<_>>()
            ),
            None if command.program.contains('/') => format!("there is no file {}", command.program),
            None => "there is no program of this name in PATH: install it, or write its absolute path. A service and an AI \
                     client may have a different PATH than your shell"
                .to_owned(),
        });
    };
    let line = first_line(&program)?;
    let interpreter = line.strip_prefix("#!")?.trim_start();
    let shown = program.display();
    if line.ends_with('\r') {
        return Some(format!(
            "the first line of {shown} ends with a carriage return, as Windows writes it, which the kernel takes for a part \
             of the interpreter's name: run `sed -i 's/\\r$//' {shown}`"
        ));
    }
    let interpreter = interpreter.split_whitespace().next().unwrap_or_default();
    let is_missing = !Path::new(interpreter).exists();
    is_missing.then(|| format!("the interpreter {interpreter:?} in the first line of {shown} does not exist"))
}

fn refused(command: &ServerCommand) -> Option<String> {
    let program = found(command)?;
    let is_file = program.is_file();
    is_file.then(|| format!("{} is not executable: run `chmod +x` on it", program.display()))
}

/// Returns the file of the program, if there is one.
fn found(command: &ServerCommand) -> Option<PathBuf> {
    let named = || {
        let path = command.directory.clone().unwrap_or_default().join(&command.program);
        Some(path).filter(|path| command.program.contains('/') && path.exists())
    };
    named().or_else(|| {
        let first = program_files(command, std::env::var_os("PATH").as_deref()).into_iter().next();
        first.filter(|path| path.exists())
    })
}

fn first_line(program: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = [0; FIRST_LINE_BYTES_MAX];
    let count = std::fs::File::open(program).ok()?.read(&mut start).ok()?;
    let line = start[..count].split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_cause_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().expect("a directory");
        let script = |name: &str, text: &str, mode| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
            path.display().to_string()
        };
        let windows = script("windows", "#!/bin/sh\r\nexit\r\n", 0o755);
        let orphan = script("orphan", "#!/no/such/python -u\n", 0o755);
        let plain = script("plain", "#!/bin/sh\n", 0o644);
        let good = script("good", "#!/bin/sh\n", 0o755);
        let command =
            |program: &str| ServerCommand { program: program.to_owned(), ..ServerCommand::default() };
        let no_format = script("format", "\0", 0o755);
        let explained = explain(&command(&no_format), &io::Error::from_raw_os_error(nix::libc::ENOEXEC));
        assert!(explained.contains("the first line of a script names its interpreter"), "{explained}");
        assert_eq!(find_program(&command(&good)), Ok(PathBuf::from(&good)));
        let folder = folder.path().display().to_string();
        assert_eq!(
            find_program(&command(&folder)),
            Err(NotExecutable(format!("{folder:?} is not an executable file")))
        );
        for (program, directory, words) in [
            ("/bin/true", Some("/no/such/folder"), "its cwd /no/such/folder is no directory"),
            ("npx-x -y @x/server", None, "command = \"npx-x\", args = [\"-y\", \"@x/server\"]"),
            ("no-such-program", None, "there is no program of this name in PATH"),
            ("/no/such/program", None, "there is no file /no/such/program"),
            (&windows, None, "ends with a carriage return"),
            (&orphan, None, "the interpreter \"/no/such/python\" in the first line of"),
            (&plain, None, "is not executable: run `chmod +x` on it"),
        ] {
            let directory = directory.map(PathBuf::from);
            let command = ServerCommand { directory, ..command(program) };
            let mut process = std::process::Command::new(program);
            if let Some(directory) = &command.directory {
                process.current_dir(directory);
            }
            let error = process.spawn().expect_err(program);
            let explained = explain(&command, &error);
            assert!(explained.contains(words), "{program}: {explained}");
            let found = find_program(&command).expect_err(program).to_string();
            assert!(found.contains(words), "{program}: {found}");
        }
    }
}

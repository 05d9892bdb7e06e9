//! Reads a value that was not given as an argument: every account of this machine can read the arguments of a process,
//! and shells keep them in their history.

use std::io::{BufRead, Error, ErrorKind, IsTerminal, Read, Result, Write};

use nix::sys::termios::{LocalFlags, SetArg, tcgetattr, tcsetattr};

/// The maximum length of a value in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;

/// Reads a line from standard input: the value of the variable or header `name`. On a terminal, asks for it and does not
/// show what is typed.
///
/// # Errors
/// If there is no line, or if it is empty or too long.
pub(super) fn read(name: &str) -> Result<String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return read_line(&mut stdin.lock());
    }
    eprint!("Value of {name}: ");
    std::io::stderr().flush()?;
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_flags.remove(LocalFlags::ECHO);
    tcsetattr(&stdin, SetArg::TCSANOW, &hidden)?;
    let value = read_line(&mut stdin.lock());
    tcsetattr(&stdin, SetArg::TCSANOW, &shown)?;
    eprintln!("");
    value
}

fn read_line(input: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    Read::take(input, VALUE_BYTES_MAX).read_line(&mut line)?;
    if line.len() as u64 == VALUE_BYTES_MAX {
        return Err(Error::new(ErrorKind::InvalidData, "it is too long"));
    }
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    if line.is_empty() { Err(Error::new(ErrorKind::UnexpectedEof, "there is none")) } else { Ok(line) }
}

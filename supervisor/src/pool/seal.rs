//! Verification from outside: what the kernel says about a worker that says it is sealed.

use super::process::WorkerProcess;

/// Why a worker is not trusted with code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsealed {
    /// A line of `/proc/PID/status` is not as it must be.
    #[error("worker not sealed: {field} is {found}, it must be {needed}")]
    Field { field: &'static str, found: String, needed: String },
    /// The kernel does not say.
    #[error("worker not verifiable: /proc/PID/status {0}")]
    Unreadable(String),
}

/// Checks the process against `filters`, the number of seccomp filters that it must have installed.
pub(super) fn verify(process: &WorkerProcess, filters: u32) -> Result<(), Unsealed> {
    let unreadable = |error: std::io::Error| Unsealed::Unreadable(format!("cannot be read: {error}"));
    let own = std::fs::read_to_string("/proc/self/status").map_err(unreadable)?;
    let status = process.proc_file("status").map_err(unreadable)?;
    check(&status, &own, filters)?;
    match process.is_alive() {
        true => Ok(()),
        false => Err(Unsealed::Unreadable("belongs to a process that has ended".into())),
    }
}

fn check(status: &str, own: &str, filters: u32) -> Result<(), Unsealed> {
    let none = "0000000000000000";
    // What confines the supervisor itself, in a container for instance, is inherited and counted too.
    let inherited = value(own, "Seccomp_filters").and_then(|count| count.parse::<u32>().ok()).unwrap_or(0);
    let needed = [
        ("Seccomp", "2".to_owned()),
        ("Seccomp_filters", (filters + inherited).to_string()),
        ("NoNewPrivs", "1".to_owned()),
        ("CapEff", none.to_owned()),
        ("CapPrm", none.to_owned()),
        ("Threads", "1".to_owned()),
    ];
    for (field, needed) in needed {
        let found = value(status, field).unwrap_or("missing");
        if found != needed {
            return Err(Unsealed::Field { field, found: found.to_owned(), needed });
        }
    }
    Ok(())
}

fn value<'a>(status: &'a str, field: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEALED: &str = "Name:\tpython3\nThreads:\t1\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
                          NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";

    #[test]
    fn every_field_that_differs_is_refused() {
        assert_eq!(check(SEALED, "", 3), Ok(()));
        for (line, other) in [
            ("Seccomp:\t2", "Seccomp:\t0"),
            ("Seccomp_filters:\t3", "Seccomp_filters:\t2"),
            ("NoNewPrivs:\t1", "NoNewPrivs:\t0"),
            ("CapEff:\t0000000000000000", "CapEff:\t0000000000000001"),
            ("CapPrm:\t0000000000000000", "CapPrm:\t0000000000000001"),
            ("Threads:\t1", "Threads:\t2"),
            ("Seccomp:\t2\n", ""),
        ] {
            assert!(SEALED.contains(line), "{line}");
            assert!(check(&SEALED.replacen(line, other, 1), "", 3).is_err(), "{line} -> {other}");
        }
    }

    #[test]
    fn filters_of_the_supervisor_itself_are_counted() {
        assert_eq!(check(&SEALED.replace("filters:\t3", "filters:\t5"), "Seccomp_filters:\t2\n", 3), Ok(()));
        assert!(check(SEALED, "Seccomp_filters:\t2\n", 3).is_err());
    }
}

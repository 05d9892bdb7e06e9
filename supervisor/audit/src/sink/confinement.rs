//! Takes from the threads that serve connections the right to remove, rename or truncate a file of the log. Landlock applies to the
//! calling thread and the threads that it starts. The thread that removes expired segments starts before, and keeps the right.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus,
};

/// The newest version of Landlock that is needed: the first one that restricts truncation.
const NEEDED: ABI = ABI::V3;

/// The files of the kernel about processes: they tell whether a sandboxed server has connected.
const PROCESSES: &str = "/proc";

/// Confines this thread and the threads that it starts: they can create files in `log` and append to them, replace files in
/// `programs` and `keys`, and read those of [`PROCESSES`], and have no other file.
///
/// # Errors
/// If the kernel has no Landlock of version 3 (Linux 6.2), or a path cannot be opened.
pub(super) fn confine(log: &Path, programs: &Path, keys: &Path) -> io::Result<()> {
    let append = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile | AccessFs::MakeReg;
    let replace = append | AccessFs::RemoveFile | AccessFs::Truncate;
    let rule = |path: &Path, access: BitFlags<AccessFs>| -> io::Result<PathBeneath<PathFd>> {
        Ok(PathBeneath::new(PathFd::new(path).map_err(io::Error::other)?, access))
    };
    let rules = [
        rule(log, append)?,
        rule(programs, replace)?,
        rule(keys, replace)?,
        rule(Path::new(PROCESSES), AccessFs::ReadFile.into())?,
    ];
    let restricted = || -> Result<RulesetStatus, landlock::RulesetError> {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.handle_access(AccessFs::from_all(NEEDED))?.create()?;
        let rules = rules.into_iter().map(Ok::<_, landlock::RulesetError>);
        Ok(ruleset.add_rules(rules)?.restrict_self()?.ruleset)
    };
    match restricted().map_err(io::Error::other)? {
        RulesetStatus::FullyEnforced => Ok(()),
        _ => Err(io::Error::other("Landlock is not enforced")),
    }
}

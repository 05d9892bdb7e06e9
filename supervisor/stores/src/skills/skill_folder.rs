//! Reads and writes the folder of a skill. The content of a folder is untrusted.
//!
//! A folder is opened once, and its files are opened relative to the folder's descriptor. So all files are of one
//! version, even if another process replaces the folder meanwhile. Symbolic links are not followed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use lockhouse_protocol::Language;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::front_matter::{FrontMatter, FrontMatterFault};
use super::skill::{CODE_BYTES_MAX, Skill, SkillFault, check_description};
use super::skill_name::{Name, NameFault};

/// The name of the file with a skill's description. Each folder with such a file is a skill.
pub(super) const DOCUMENT: &str = "SKILL.md";
/// Maximum length of a SKILL.md in bytes.
/// Bound: skills.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// The languages in which a skill can be written.
const LANGUAGES: [Language; 2] = [Language::Python, Language::Typescript];

/// Why programs cannot import the skill in a folder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The folder does not exist.
    #[error("there is no such folder")]
    Absent,
    /// The folder is a valid skill, but has no code in a language that Lockhouse supports.
    #[error("it has no skill.py and no skill.ts, so code cannot import it")]
    NoCode,
    #[error(transparent)]
    Invalid(#[from] FolderFault),
}

/// Why a folder does not contain a valid skill.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FolderFault {
    #[error("it is a symbolic link or a file, not a folder")]
    NoFolder,
    #[error("it cannot be opened: {}", .0.desc())]
    Unopened(Errno),
    #[error("its folder's name is no name for a skill: {0}")]
    FolderName(NameFault),
    #[error(transparent)]
    DraftName(NameFault),
    #[error("it has no SKILL.md")]
    NoDocument,
    #[error("it has both skill.py and skill.ts: a skill has one language")]
    TwoLanguages,
    #[error("{file}: {fault}")]
    File { file: &'static str, fault: FileFault },
    #[error(transparent)]
    Skill(#[from] SkillFault),
}

/// Why a file in the folder of a skill is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    #[error(transparent)]
    FrontMatter(#[from] FrontMatterFault),
    #[error("it has no name")]
    NoName,
    #[error("its name is not {folder}, the name of its folder")]
    OtherName { folder: Name },
    #[error(transparent)]
    Description(#[from] SkillFault),
    #[error("it is a symbolic link, which is not followed")]
    Link,
    #[error("it cannot be opened: {}", .0.desc())]
    Unopened(Errno),
    #[error("it cannot be read: {0}")]
    Unread(String),
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it has more than {0} bytes")]
    TooLong(usize),
    #[error("it is not UTF-8")]
    NotUtf8,
}

/// Reads the skill of this name from its folder in the directory `parent`.
pub(super) fn read(parent: &Path, name: &Name) -> Result<Skill, LoadError> {
    read_at(&parent.join(name.as_str()), name)
}

/// Reads the skill in the folder at `path`. The skill must have this name.
pub(super) fn read_at(path: &Path, name: &Name) -> Result<Skill, LoadError> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let folder = open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::ENOENT => LoadError::Absent,
        Errno::ENOTDIR | Errno::ELOOP => FolderFault::NoFolder.into(),
        error => FolderFault::Unopened(error).into(),
    })?;
    let document = read_file(&folder, DOCUMENT, DOCUMENT_BYTES_MAX)?.ok_or(FolderFault::NoDocument)?;
    let read = FrontMatter::parse(&document).map_err(|fault| invalid_file(DOCUMENT, fault))?;
    match &read.name {
        Some(named) if named == name.as_str() => {}
        Some(_) => return Err(invalid_file(DOCUMENT, FileFault::OtherName { folder: name.clone() })),
        None => return Err(invalid_file(DOCUMENT, FileFault::NoName)),
    }
    let mut found = Vec::new();
    for language in LANGUAGES {
        if let Some(code) = read_file(&folder, Skill::code_file(language), CODE_BYTES_MAX)? {
            found.push((language, code));
        }
    }
    let description = read.description.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    check_description(&description).map_err(|fault| invalid_file(DOCUMENT, fault))?;
    let (language, code) = match found.len() {
        0 => return Err(LoadError::NoCode),
        1 => found.remove(0),
        _ => return Err(FolderFault::TwoLanguages.into()),
    };
    let said = |key: &str| read.metadata.get(key).map(Vec::as_slice).unwrap_or_default();
    let tags =
        said("tags").iter().flat_map(|tags| tags.split(',')).map(str::trim).filter(|tag| !tag.is_empty());
    let skill = Skill {
        name: name.clone(),
        description,
        tags: tags.map(str::to_owned).collect(),
        language,
        // Skills of other products may have versions that are not numbers.
        version: said("version").first().and_then(|version| version.parse().ok()).unwrap_or(1).max(1),
        code,
        tests: read_file(&folder, Skill::tests_file(language), CODE_BYTES_MAX)?,
    };
    skill.validate().map_err(FolderFault::Skill)?;
    Ok(skill)
}

fn invalid_file(file: &'static str, fault: impl Into<FileFault>) -> LoadError {
    FolderFault::File { file, fault: fault.into() }.into()
}

/// Reads a text file of at most `bytes_max` bytes in the folder of a skill. Returns `None` if the file does not
/// exist. Fails if the file is longer, is not a regular file, or is not UTF-8.
fn read_file(folder: &OwnedFd, name: &'static str, bytes_max: usize) -> Result<Option<String>, LoadError> {
    // `O_NONBLOCK`: opening a named pipe must not block.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP) => return Err(invalid_file(name, FileFault::Link)),
        Err(error) => return Err(invalid_file(name, FileFault::Unopened(error))),
    };
    let unreadable = |error: io::Error| invalid_file(name, FileFault::Unread(error.to_string()));
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(invalid_file(name, FileFault::NotRegular));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > bytes_max {
        return Err(invalid_file(name, FileFault::TooLong(bytes_max)));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| invalid_file(name, FileFault::NotUtf8))
}

/// Writes a skill to a new folder, which only the current Unix user can access.
pub(super) fn write(path: &Path, skill: &Skill) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    let put = |name: &str, text: &str| {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path.join(name))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all())
    };
    put(DOCUMENT, &skill.to_markdown())?;
    put(Skill::code_file(skill.language), &skill.code)?;
    match &skill.tests {
        Some(tests) => put(Skill::tests_file(skill.language), tests),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Writes the given files (name and content) to a new folder. Returns the code of the skill in it, or the
    /// error message if the folder is not a valid skill.
    fn load_outcome_of(files: &[(&str, &[u8])]) -> String {
        let parent = tempfile::tempdir().expect("a directory");
        let folder = parent.path().join("report");
        fs::create_dir(&folder).expect("a folder");
        for (name, bytes) in files {
            fs::write(folder.join(name), bytes).expect("a file");
        }
        load_outcome(parent.path())
    }

    fn load_outcome(parent: &Path) -> String {
        let name = Name::parse("report").expect("a name");
        read(parent, &name).map_or_else(|why| why.to_string(), |skill| skill.code)
    }

    #[test]
    #[allow(clippy::type_complexity, reason = "a table of test cases")]
    fn invalid_skill_folders_are_reported() {
        let document: (&str, &[u8]) = (DOCUMENT, b"---\nname: report\ndescription: Reports.\n---\n");
        let rows: [(&[(&str, &[u8])], &str); 12] = [
            (&[document, ("skill.py", b"x = 1\n")], "x = 1\n"),
            (&[], "it has no SKILL.md"),
            (&[document], "it has no skill.py and no skill.ts, so code cannot import it"),
            (
                &[document, ("skill.py", b"x"), ("skill.ts", b"x")],
                "it has both skill.py and skill.ts: a skill has one language",
            ),
            (&[document, ("skill.py", b" \n")], "the code is empty"),
            (&[document, ("skill.py", b"\xff")], "skill.py: it is not UTF-8"),
            (
                &[(DOCUMENT, b"# Report\n")],
                "SKILL.md: it does not begin with a line ---, followed by name and description",
            ),
            (&[(DOCUMENT, b"---\ndescription: x\n---\n")], "SKILL.md: it has no name"),
            (
                &[(DOCUMENT, b"---\nname: other\n---\n")],
                "SKILL.md: its name is not report, the name of its folder",
            ),
            (
                &[(DOCUMENT, b"---\nname: report\n---\n")],
                "SKILL.md: the description is empty: say in a sentence what the skill does and when to use it",
            ),
            (
                &[(DOCUMENT, b"---\nname: report\ndescription: \"\\u200b\"\n---\n")],
                "SKILL.md: the description has the hidden character '\\u{200b}'",
            ),
            (
                &[(DOCUMENT, b"---\nname: &a report\n---\n")],
                "SKILL.md: line 2 has an anchor (&), which is not followed",
            ),
        ];
        for (files, expected) in rows {
            assert_eq!(load_outcome_of(files), expected, "{files:?}");
        }
    }

    #[test]
    fn no_link_is_followed() {
        let parent = tempfile::tempdir().expect("a directory");
        assert_eq!(load_outcome(parent.path()), "there is no such folder");
        let folder = parent.path().join("report");
        symlink("/etc", &folder).expect("a link");
        assert_eq!(load_outcome(parent.path()), "it is a symbolic link or a file, not a folder");
        fs::remove_file(&folder).expect("removed");
        fs::create_dir(&folder).expect("a folder");
        symlink("/etc/passwd", folder.join(DOCUMENT)).expect("a link");
        assert_eq!(load_outcome(parent.path()), "SKILL.md: it is a symbolic link, which is not followed");
    }
}

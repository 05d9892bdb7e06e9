//! A skill's folder: read as what a stranger may have put there, and written whole.
//!
//! A folder is opened once and its files by that descriptor, so that all of them are of one version while another process puts
//! a new one in its place. No symbolic link is followed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use lockhouse_base::language::Language;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::front_matter::FrontMatter;
use super::name::Name;
use super::skill::{CODE_BYTES_MAX, Skill, check_description};

pub(super) const DOCUMENT: &str = "SKILL.md";
/// Bytes of a SKILL.md.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
const LANGUAGES: [Language; 2] = [Language::Python, Language::Typescript];

/// Why a folder is no skill that code can import.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// There is no such folder.
    #[error("there is no such folder")]
    Absent,
    /// It is a skill, but not of the kind that code imports.
    #[error("it has no skill.py and no skill.ts, so code cannot import it")]
    NoCode,
    /// In words.
    #[error("{0}")]
    Invalid(String),
}

/// Reads the folder of that name.
pub(super) fn read(parent: &Path, name: &Name) -> Result<Skill, Unreadable> {
    read_at(&parent.join(name.as_str()), name)
}

/// Reads a folder that holds the skill of that name.
pub(super) fn read_at(path: &Path, name: &Name) -> Result<Skill, Unreadable> {
    let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let folder = open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::ENOENT => Unreadable::Absent,
        Errno::ENOTDIR | Errno::ELOOP => {
            Unreadable::Invalid("it is a symbolic link or a file, which is not followed".into())
        }
        error => Unreadable::Invalid(format!("it cannot be opened: {}", error.desc())),
    })?;
    let document = file(&folder, DOCUMENT, DOCUMENT_BYTES_MAX)?;
    let document = document.ok_or_else(|| Unreadable::Invalid("it has no SKILL.md".into()))?;
    let read = FrontMatter::parse(&document).map_err(|why| invalid(DOCUMENT, &why))?;
    match &read.name {
        Some(named) if named == name.as_str() => {}
        Some(_) => {
            return Err(invalid(DOCUMENT, &format!("its name is not {name}, as its folder is called")));
        }
        None => return Err(invalid(DOCUMENT, "it has no name")),
    }
    let mut found = Vec::new();
    for language in LANGUAGES {
        if let Some(code) = file(&folder, Skill::code_file(language), CODE_BYTES_MAX)? {
            found.push((language, code));
        }
    }
    let description = read.description.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    check_description(&description).map_err(|why| invalid(DOCUMENT, &why))?;
    let (language, code) = match found.len() {
        0 => return Err(Unreadable::NoCode),
        1 => found.remove(0),
        _ => {
            return Err(Unreadable::Invalid(
                "it has both skill.py and skill.ts: a skill has one language".into(),
            ));
        }
    };
    let said = |key: &str| read.metadata.get(key).map(Vec::as_slice).unwrap_or_default();
    let tags =
        said("tags").iter().flat_map(|tags| tags.split(',')).map(str::trim).filter(|tag| !tag.is_empty());
    let skill = Skill {
        name: name.clone(),
        description,
        tags: tags.map(str::to_owned).collect(),
        language,
        // Others count their versions as they like.
        version: said("version").first().and_then(|version| version.parse().ok()).unwrap_or(1).max(1),
        code,
        tests: file(&folder, Skill::tests_file(language), CODE_BYTES_MAX)?,
    };
    skill.check().map_err(Unreadable::Invalid)?;
    Ok(skill)
}

fn invalid(file: &str, why: &str) -> Unreadable {
    Unreadable::Invalid(format!("{file}: {why}"))
}

/// The text of a regular file of at most so many bytes; `None` if there is none.
fn file(folder: &OwnedFd, name: &str, bytes_max: usize) -> Result<Option<String>, Unreadable> {
    // A pipe must not hold us up.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP) => return Err(invalid(name, "it is a symbolic link, which is not followed")),
        Err(error) => return Err(invalid(name, &format!("it cannot be opened: {}", error.desc()))),
    };
    let unreadable = |error: io::Error| invalid(name, &format!("it cannot be read: {error}"));
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(invalid(name, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > bytes_max {
        return Err(invalid(name, &format!("it has more than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| invalid(name, "it is not UTF-8"))
}

/// Writes a new folder, which only its owner can enter.
pub(super) fn write(path: &Path, skill: &Skill) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    let put = |name: &str, text: &str| {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path.join(name))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all())
    };
    put(DOCUMENT, &skill.document())?;
    put(Skill::code_file(skill.language), &skill.code)?;
    match &skill.tests {
        Some(tests) => put(Skill::tests_file(skill.language), tests),
        None => Ok(()),
    }
}

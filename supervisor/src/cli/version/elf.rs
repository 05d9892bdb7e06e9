//! Reads from an ELF file of x86-64 or aarch64 which sections it has, and which versions of the GNU C library it needs.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use object::read::{FileKind, ReadCache};
use object::{LittleEndian, read};

/// The list of dependencies, in the form of `cargo auditable`, is in a section of this name.
const DEPENDENCY_LIST: &[u8] = b".dep-v0";
/// The section with the names of symbols and their versions, for the dynamic linker.
const DYNAMIC_STRINGS: &[u8] = b".dynstr";

/// What the sections of a program say. Files that are no 64-bit ELF files have none.
#[derive(Debug, Default)]
pub(super) struct ProgramFile {
    pub(super) has_dependency_list: bool,
    /// The highest version of a symbol that the program imports from the GNU C library. `None` if it imports none.
    pub(super) oldest_glibc: Option<GlibcVersion>,
}

/// A version of the GNU C library, such as 2.35.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlibcVersion {
    major: u32,
    minor: u32,
}

impl std::fmt::Display for GlibcVersion {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl ProgramFile {
    /// Reads the table of sections.
    ///
    /// # Errors
    /// If the file cannot be read, or its tables are malformed.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = ReadCache::new(File::open(path)?);
        match FileKind::parse(&file) {
            Ok(FileKind::Elf64) => {
                Self::parse(&file).map_err(|error| Error::new(ErrorKind::InvalidData, error))
            }
            _ => Ok(Self::default()),
        }
    }

    fn parse(file: &ReadCache<File>) -> read::Result<Self> {
        let header = FileHeader64::<LittleEndian>::parse(file)?;
        let sections = header.sections(LittleEndian, file)?;
        let section = |name| sections.section_by_name(LittleEndian, name).map(|(_, section)| section);
        let strings = section(DYNAMIC_STRINGS).map(|section| section.data(LittleEndian, file)).transpose()?;
        Ok(Self {
            has_dependency_list: section(DEPENDENCY_LIST).is_some(),
            oldest_glibc: strings.and_then(highest_glibc),
        })
    }
}

/// Returns the highest version of the GNU C library among strings that each end with a zero byte.
fn highest_glibc(strings: &[u8]) -> Option<GlibcVersion> {
    let version = |string: &[u8]| {
        let (major, rest) = std::str::from_utf8(string).ok()?.strip_prefix("GLIBC_")?.split_once('.')?;
        let minor = rest.split('.').next()?;
        Some(GlibcVersion { major: major.parse().ok()?, minor: minor.parse().ok()? })
    };
    strings.split(|byte| *byte == 0).filter_map(version).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_HEADER_BYTES: usize = 64;
    const SECTION_HEADER_BYTES: usize = 64;
    /// The place of the names, after a section that is always empty and the section with the names of sections.
    const NAMES: usize = FILE_HEADER_BYTES + 2 * SECTION_HEADER_BYTES;

    fn open(content: &[u8]) -> Result<ProgramFile> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("program");
        std::fs::write(&path, content).expect("a file");
        ProgramFile::open(&path)
    }

    /// A header that refers to `count` sections, of which the second has the names of sections, in `size` bytes.
    fn elf(count: u16, size: u64) -> Vec<u8> {
        let mut file = vec![0; NAMES];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[20] = 1;
        file[40..48].copy_from_slice(&(FILE_HEADER_BYTES as u64).to_le_bytes());
        file[58..60].copy_from_slice(&(SECTION_HEADER_BYTES as u16).to_le_bytes());
        file[60..62].copy_from_slice(&count.to_le_bytes());
        file[62] = 1;
        let section = &mut file[FILE_HEADER_BYTES + SECTION_HEADER_BYTES..];
        section[4] = 3;
        section[24..][..8].copy_from_slice(&(NAMES as u64).to_le_bytes());
        section[32..][..8].copy_from_slice(&size.to_le_bytes());
        file
    }

    #[test]
    fn a_section_is_found_by_its_name() {
        let names = b".dep-v0\0";
        let mut file = elf(2, names.len() as u64);
        file.extend(names);
        assert!(open(&file).expect("a program").has_dependency_list);
        let other = file.len() - 2;
        file[other] = b'1';
        assert!(!open(&file).expect("a program").has_dependency_list);
        assert!(!open(b"#!/bin/sh\n").expect("a script").has_dependency_list);
    }

    #[test]
    fn malformed_tables_are_errors_and_names_past_the_end_of_the_file_are_none() {
        let too_many = open(&elf(9, 0));
        let without_names = open(&elf(1, 0));
        assert!(too_many.is_err() && without_names.is_err());
        let past_the_end = open(&elf(2, u64::MAX / 2)).expect("a program");
        assert!(!past_the_end.has_dependency_list && past_the_end.oldest_glibc.is_none());
    }

    #[test]
    fn the_highest_imported_version_counts() {
        let highest = highest_glibc(b"memcpy\0GLIBC_2.9\0GLIBC_2.14.1\0GLIBC_PRIVATE\0GCC_3.0\0");
        assert_eq!(highest.map(|version| version.to_string()).as_deref(), Some("2.14"));
    }
}

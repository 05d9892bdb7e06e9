//! Reads from an ELF file of x86-64 or aarch64 which sections it has, and which versions of the GNU C library it needs.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The list of dependencies, in the form of `cargo auditable`, is in a section of this name.
const DEPENDENCY_LIST: &str = ".dep-v0";
/// The maximum number of sections that are read.
const SECTIONS_MAX: u16 = 4096;
/// The maximum size in bytes of a table of strings that is read.
const STRINGS_BYTES_MAX: u64 = 16 * 1024 * 1024;
const FILE_HEADER_BYTES: usize = 64;
const SECTION_HEADER_BYTES: usize = 64;

/// The sections of a program. Files that are no 64-bit little-endian ELF files have none.
pub(super) struct ProgramFile {
    sections: Vec<String>,
    /// The names of symbols and their versions, for the dynamic linker. Empty if there are none.
    dynamic_strings: Vec<u8>,
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

/// The place of a section in the file.
struct Section {
    name_offset: usize,
    offset: u64,
    size: u64,
}

impl ProgramFile {
    /// Reads the table of sections.
    ///
    /// # Errors
    /// If the file cannot be read, or its tables are malformed or larger than the limits of this module.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let mut header = [0; FILE_HEADER_BYTES];
        let is_elf = file.read_exact_at(&mut header, 0).is_ok() && header.starts_with(b"\x7fELF\x02\x01");
        if !is_elf {
            return Ok(Self { sections: Vec::new(), dynamic_strings: Vec::new() });
        }
        let sections = read_sections(&file, &header)?;
        let names_index = usize::from(u16_at(&header, 62)?);
        let names = read_strings(&file, sections.get(names_index).ok_or_else(malformed)?)?;
        let name = |section: &Section| string_at(&names, section.name_offset);
        let dynamic = sections.iter().find(|section| name(section) == ".dynstr");
        let dynamic_strings = dynamic.map(|section| read_strings(&file, section)).transpose()?;
        Ok(Self {
            sections: sections.iter().map(name).collect(),
            dynamic_strings: dynamic_strings.unwrap_or_default(),
        })
    }

    pub(super) fn has_dependency_list(&self) -> bool {
        self.sections.iter().any(|name| name == DEPENDENCY_LIST)
    }

    /// Returns the highest version of a symbol that the program imports from the GNU C library. `None` if it imports
    /// none.
    pub(super) fn oldest_glibc(&self) -> Option<GlibcVersion> {
        let version = |string: &[u8]| {
            let (major, rest) = std::str::from_utf8(string).ok()?.strip_prefix("GLIBC_")?.split_once('.')?;
            let minor = rest.split('.').next()?;
            Some(GlibcVersion { major: major.parse().ok()?, minor: minor.parse().ok()? })
        };
        self.dynamic_strings.split(|byte| *byte == 0).filter_map(version).max()
    }
}

fn read_sections(file: &File, header: &[u8]) -> Result<Vec<Section>> {
    let (table, count) = (u64_at(header, 40)?, u16_at(header, 60)?);
    if count > SECTIONS_MAX || usize::from(u16_at(header, 58)?) != SECTION_HEADER_BYTES {
        return Err(malformed());
    }
    let mut bytes = vec![0; usize::from(count) * SECTION_HEADER_BYTES];
    file.read_exact_at(&mut bytes, table)?;
    let section = |bytes: &[u8]| {
        let name_offset = u32_at(bytes, 0)? as usize;
        Ok(Section { name_offset, offset: u64_at(bytes, 24)?, size: u64_at(bytes, 32)? })
    };
    bytes.chunks_exact(SECTION_HEADER_BYTES).map(section).collect()
}

fn read_strings(file: &File, section: &Section) -> Result<Vec<u8>> {
    if section.size > STRINGS_BYTES_MAX {
        return Err(malformed());
    }
    let mut strings = vec![0; usize::try_from(section.size).map_err(|_| malformed())?];
    file.read_exact_at(&mut strings, section.offset)?;
    Ok(strings)
}

/// Returns the string that begins at this offset and ends before a zero byte. Empty if there is none.
fn string_at(strings: &[u8], offset: usize) -> String {
    let string = strings.get(offset..).unwrap_or_default().split(|byte| *byte == 0).next();
    String::from_utf8_lossy(string.unwrap_or_default()).into_owned()
}

fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "its table of sections is malformed")
}

fn bytes_at<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N]> {
    bytes.get(offset..offset + N).and_then(|found| found.try_into().ok()).ok_or_else(malformed)
}

fn u16_at(bytes: &[u8], offset: usize) -> Result<u16> {
    bytes_at(bytes, offset).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32> {
    bytes_at(bytes, offset).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], offset: usize) -> Result<u64> {
    bytes_at(bytes, offset).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(content: &[u8]) -> Result<ProgramFile> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("program");
        std::fs::write(&path, content).expect("a file");
        ProgramFile::open(&path)
    }

    /// A header that refers to one section, which has the names of sections.
    fn elf(count: u16, size: u64) -> Vec<u8> {
        let mut file = vec![0; FILE_HEADER_BYTES + SECTION_HEADER_BYTES];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[40..48].copy_from_slice(&(FILE_HEADER_BYTES as u64).to_le_bytes());
        file[58..60].copy_from_slice(&(SECTION_HEADER_BYTES as u16).to_le_bytes());
        file[60..62].copy_from_slice(&count.to_le_bytes());
        file[FILE_HEADER_BYTES + 24..][..8].copy_from_slice(&128_u64.to_le_bytes());
        file[FILE_HEADER_BYTES + 32..][..8].copy_from_slice(&size.to_le_bytes());
        file
    }

    #[test]
    fn a_section_is_found_by_its_name() {
        let names = b".dep-v0\0";
        let mut file = elf(1, names.len() as u64);
        file.extend(names);
        assert!(open(&file).expect("a program").has_dependency_list());
        let other = file.len() - 2;
        file[other] = b'1';
        assert!(!open(&file).expect("a program").has_dependency_list());
        assert!(!open(b"#!/bin/sh\n").expect("a script").has_dependency_list());
    }

    #[test]
    fn malformed_tables_are_errors_and_never_read_beyond_their_limits() {
        let past_the_end = open(&elf(1, 8));
        let huge = open(&elf(1, STRINGS_BYTES_MAX + 1));
        let many = open(&elf(SECTIONS_MAX + 1, 0));
        let none = open(&elf(0, 0));
        assert!([past_the_end, huge, many, none].iter().all(Result::is_err));
    }

    #[test]
    fn the_highest_imported_version_counts() {
        let strings = b"memcpy\0GLIBC_2.9\0GLIBC_2.14.1\0GLIBC_PRIVATE\0GCC_3.0\0".to_vec();
        let program = ProgramFile { sections: Vec::new(), dynamic_strings: strings };
        assert_eq!(program.oldest_glibc().map(|version| version.to_string()).as_deref(), Some("2.14"));
    }
}

//! Reads POSIX access control lists, which give permissions on a file to further accounts and groups.
#![allow(unsafe_code, reason = "getxattr has no wrapper in nix")]

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The extended attribute with the list, as the kernel stores it: a version, and entries of 8 bytes.
const ATTRIBUTE: &std::ffi::CStr = c"system.posix_acl_access";
const VERSION: u32 = 2;
/// Maximum size of a list in bytes. An attribute has at most 64 KiB.
const BYTES_MAX: usize = 64 * 1024;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;

/// An account or group, other than the owner and all others, that an access control list gives a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grantee {
    User(u32),
    Group(u32),
    /// The group of the file itself.
    OwningGroup,
}

/// Returns who has a permission (4 to read, 2 to write) on a file by its access control list. Follows links. `None` if the
/// file has no list, so that its mode says everything.
///
/// # Errors
/// If the list cannot be read or is malformed.
pub fn grantees(path: &Path, permission: u16) -> io::Result<Option<Vec<Grantee>>> {
    match read(path)? {
        Some(list) => parse(&list, permission).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into()),
        None => Ok(None),
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut list = vec![0_u8; BYTES_MAX];
    // SAFETY: both names are live C strings, and the buffer has the given length.
    let length =
        unsafe { libc::getxattr(path.as_ptr(), ATTRIBUTE.as_ptr(), list.as_mut_ptr().cast(), list.len()) };
    match usize::try_from(length) {
        Ok(length) => {
            list.truncate(length);
            Ok(Some(list))
        }
        Err(_) => {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // The file has no list, or its file system has none.
                Some(libc::ENODATA | libc::EOPNOTSUPP) => Ok(None),
                _ => Err(error),
            }
        }
    }
}

/// Returns who has a permission by a list; `None` if the list is malformed. The mask limits all entries but those of the
/// owner and of all others.
fn parse(list: &[u8], permission: u16) -> Option<Vec<Grantee>> {
    let (version, entries) = list.split_first_chunk::<4>()?;
    let (entries, []) = entries.as_chunks::<8>() else { return None };
    if u32::from_le_bytes(*version) != VERSION {
        return None;
    }
    let entries = entries.iter().map(|[tag, tag2, bits, bits2, id @ ..]| {
        (u16::from_le_bytes([*tag, *tag2]), u16::from_le_bytes([*bits, *bits2]), u32::from_le_bytes(*id))
    });
    let mask = entries.clone().find(|(tag, ..)| *tag == MASK).map_or(u16::MAX, |(_, bits, _)| bits);
    let given = entries.filter(|(_, bits, _)| bits & mask & permission != 0);
    let grantee = |(tag, _, id)| match tag {
        USER => Some(Grantee::User(id)),
        GROUP => Some(Grantee::Group(id)),
        OWNING_GROUP => Some(Grantee::OwningGroup),
        _ => None,
    };
    Some(given.filter_map(grantee).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut list = VERSION.to_le_bytes().to_vec();
        for (tag, bits, id) in entries {
            list.extend(tag.to_le_bytes().into_iter().chain(bits.to_le_bytes()).chain(id.to_le_bytes()));
        }
        list
    }

    #[test]
    fn the_mask_limits_what_a_list_gives() {
        const NONE: u32 = u32::MAX;
        let entries = |mask| {
            list(&[
                (0x01, 7, NONE),
                (USER, 6, 1_001),
                (USER, 4, 1_002),
                (OWNING_GROUP, 6, NONE),
                (GROUP, 2, 50),
                (MASK, mask, NONE),
                (0x20, 4, NONE),
            ])
        };
        let (ann, bob, staff) = (Grantee::User(1_001), Grantee::User(1_002), Grantee::Group(50));
        assert_eq!(parse(&entries(7), 2), Some(vec![ann, Grantee::OwningGroup, staff]));
        assert_eq!(parse(&entries(7), 4), Some(vec![ann, bob, Grantee::OwningGroup]));
        assert_eq!(parse(&entries(4), 2), Some(vec![]));
        assert_eq!(parse(&entries(4)[..20], 2).map(|given| given.len()), Some(1), "without a mask");
    }

    #[test]
    fn a_malformed_list_is_no_list() {
        for malformed in [&b""[..], &[2, 0, 0], &[3, 0, 0, 0], &[2, 0, 0, 0, 1]] {
            assert_eq!(parse(malformed, 2), None, "{malformed:?}");
        }
        assert_eq!(parse(&list(&[]), 2), Some(vec![]));
    }

    #[test]
    fn a_file_without_a_list_has_none() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        assert_eq!(grantees(file.path(), 2).expect("readable"), None);
        assert!(grantees(Path::new("/nonexistent"), 2).is_err());
    }
}

//! The reasons for which a file of this machine cannot be used.

use std::io;

use nix::errno::Errno;

/// Why a file of this machine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("there is no such file or folder")]
    NotFound,
    #[error("its folder does not exist: make it first, with `mkdir` of this server or with os.makedirs")]
    NoFolder,
    #[error("it is a folder")]
    IsFolder,
    #[error("it is not a folder")]
    NotFolder,
    #[error("it exists already, and it is not a folder")]
    Exists,
    /// A pipe, a device, a socket or a symbolic link.
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it has {bytes} bytes, and the limit is {most} (file_mib of its table in the configuration)")]
    TooLarge { bytes: u64, most: u64 },
    #[error("a folder or symbolic link in its path was changed at the same time")]
    Changed,
    #[error(
        "a file at this path was created, changed or removed after the write was decided; nothing was written"
    )]
    Replaced,
    #[error("it is read-only: its mode lets nobody write to it")]
    ReadOnly,
    #[error("it has other names (hard links), from which a new file would be cut off")]
    HardLinked,
    #[error("no program can use files of the kernel and of Lockhouse itself")]
    Reserved,
    #[error("the user of Lockhouse has no permission for it")]
    NoPermission,
    #[error("there is no space left for it")]
    NoSpace,
    #[error("it cannot be read or written: {0}")]
    Other(io::Error),
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ENOENT => Self::NotFound,
            Errno::EISDIR => Self::IsFolder,
            Errno::ENOTDIR => Self::NotFolder,
            Errno::ELOOP => Self::Changed,
            Errno::EACCES | Errno::EPERM | Errno::EROFS => Self::NoPermission,
            Errno::ENOSPC | Errno::EDQUOT => Self::NoSpace,
            Errno::ENXIO => Self::NotRegular,
            errno => Self::Other(errno.into()),
        }
    }
}

impl FileError {
    /// The name of the error in Linux, for failures whose code does not say what it is: from it, programs get the error
    /// type of their language.
    pub(super) fn errno_name(&self) -> Option<&'static str> {
        match self {
            Self::NotFound | Self::NoFolder | Self::TooLarge { .. } | Self::Reserved => None,
            Self::IsFolder => Some("EISDIR"),
            Self::NotFolder => Some("ENOTDIR"),
            Self::Exists => Some("EEXIST"),
            Self::NotRegular => Some("EINVAL"),
            Self::Changed | Self::Replaced => Some("EBUSY"),
            Self::ReadOnly | Self::HardLinked | Self::NoPermission => Some("EACCES"),
            Self::NoSpace => Some("ENOSPC"),
            Self::Other(_) => Some("EIO"),
        }
    }

    /// The error of a file or folder that cannot be created because of this error of the folder around it.
    pub(super) fn of_folder(self) -> Self {
        if matches!(self, Self::NotFound) { Self::NoFolder } else { self }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) => Errno::from_raw(number).into(),
            None => Self::Other(error),
        }
    }
}

//! Snapshot tests of the error messages of failing TypeScript programs.

use crate::errors::error_snapshots::Group;

macro_rules! groups {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let programs = include_str!(concat!("programs/typescript_", stringify!($name), ".txt"));
            Group { language: "typescript", name: stringify!($name), programs }.check().await;
        }
    )* };
}

groups! { syntax names results values modules blocked tools limits }

//! Snapshot tests of the error messages of failing Python programs.

use crate::errors::error_snapshots::Group;

macro_rules! groups {
    ($($name:ident)*) => { $(
        #[tokio::test]
        async fn $name() {
            let programs = include_str!(concat!("programs/python_", stringify!($name), ".txt"));
            Group { language: "python", name: stringify!($name), programs }.check().await;
        }
    )* };
}

groups! { syntax names results values parallel modules blocked tools limits }

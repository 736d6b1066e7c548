//! The studies that are part of the binary: `studies/` at the root of the repository.

use crate::error::StudyError;
use crate::words::{nearest, one_of};

/// A built-in study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    /// Study name, equal to the folder's name.
    pub name: &'static str,
    /// The text of its `study.toml`.
    pub text: &'static str,
    /// The text of its `README.md`.
    pub readme: &'static str,
}

macro_rules! studies {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../studies/", $name, "/study.toml")),
            readme: include_str!(concat!("../../../studies/", $name, "/README.md")),
        }),*]
    };
}

/// Every built-in study. To add one, add its folder's name here.
#[must_use]
pub const fn builtin() -> &'static [Builtin] {
    studies![
        "quick",
        "grpc",
        "grpc-balancing",
        "null",
        "cloud-quic",
        "conditions",
        "cluster-http3",
        "public-sites",
        "pairs",
        "observers",
        "page-load"
    ]
}

/// The built-in study of that name.
///
/// # Errors
/// If there is none; names the nearest one.
pub fn find(name: &str) -> Result<&'static Builtin, StudyError> {
    builtin().iter().find(|study| study.name == name).ok_or_else(|| {
        let names: Vec<_> = builtin().iter().map(|study| study.name).collect();
        let message =
            format!("there is no built-in study `{name}`, only {}; a file is given by its path", one_of(&names));
        StudyError::new(message).meant(nearest(name, names))
    })
}

//! The path of a page that wirelab did not generate.

use std::fmt;
use std::path::Path;

/// The path of a folder or an archive with a page. The text is kept for the lifetime of the program, so that the type
/// is `Copy` like page names; a study has only a few paths.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PagePath(&'static str);

impl PagePath {
    /// Reads a path of a study file. `None` without a slash, because then it is the name of a page.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        text.contains('/').then(|| Self(Box::leak(text.into())))
    }

    /// The path as written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    #[must_use]
    pub fn path(self) -> &'static Path {
        Path::new(self.0)
    }
}

impl fmt::Debug for PagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

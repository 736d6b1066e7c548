//! The path of a page that wirelab did not make.

use std::fmt;
use std::path::Path;

/// The path of a folder or an archive with a page in it. It is kept for as long as the program runs, so that it can be copied like the names
/// of pages; a study names a few of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PagePath(&'static str);

impl PagePath {
    /// A path as study files have it: with a slash, by which it differs from the name of a page.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        text.contains('/').then(|| Self(Box::leak(text.into())))
    }

    /// As it was written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// As a path.
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

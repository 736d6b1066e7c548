//! Documents that servers deliver, and their digests.

pub mod archives;
mod folder;
mod hosts;
pub mod made;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use wirelab_model::page::PageName;
use wirelab_model::pattern;
use wirelab_model::plan::{Job, LoadedPage, Plan, Target, Work};
use wirelab_model::settings::Exchange;
use wirelab_model::units::Size;
use wirelab_pages::answers;

use crate::error::RunError;

/// Maximum body size of a request or response. Larger bodies would fill disks or need minutes per digest, without
/// more insight.
pub const LARGEST: Size = Size(4 << 30);

/// The document root for a plan, and the digest of every response made of the pattern.
#[derive(Debug, Clone)]
pub struct Documents {
    /// Contains `<bytes>.bin` for each size, and a folder for each generated page.
    pub root: PathBuf,
    /// Document roots of pages that are folders.
    folders: HashMap<PageName, PathBuf>,
    /// Pages with one server per host, by page and number of hosts.
    spread: HashMap<(PageName, usize), Spread>,
    digests: HashMap<u64, String>,
}

/// A page with one server per host.
#[derive(Debug, Clone)]
struct Spread {
    /// Folder with the answers of its hosts.
    folder: PathBuf,
    /// Path of its document, with the query.
    document: String,
}

impl Documents {
    /// Creates the documents of a plan in the new folder `root`.
    ///
    /// # Errors
    /// If a cell's body is larger than [`LARGEST`], or a document cannot be written.
    pub fn create(root: PathBuf, plan: &Plan) -> Result<Self, RunError> {
        check(plan)?;
        fs::create_dir(&root).map_err(RunError::io("cannot make the folder", &root))?;
        let mut documents = Self { root, folders: HashMap::new(), spread: HashMap::new(), digests: HashMap::new() };
        for cell in &plan.cells {
            let requests = match &cell.job.work {
                Work::Page(page) => {
                    documents.add_page(page)?;
                    continue;
                }
                Work::Own(_) => continue,
                // Its responses are not made of the pattern.
                Work::Requests(requests) if requests.exchange == Exchange::Heron => continue,
                Work::Requests(requests) => requests,
            };
            let size = requests.response_size.bytes();
            if let (Exchange::Files, Target::Servers(_)) = (requests.exchange, &cell.job.target) {
                write(&documents.root.join(name(size)), size)?;
            }
            documents.digests.entry(size).or_insert_with(|| digest(size));
        }
        Ok(documents)
    }

    /// Writes the files of a page, unless they exist.
    fn add_page(&mut self, page: &LoadedPage) -> Result<(), RunError> {
        if let PageName::Folder(folder) = page.name {
            let number = self.folders.len();
            if let Entry::Vacant(root) = self.folders.entry(page.name) {
                let copy = self.root.with_extension(format!("page{number}"));
                folder::copy(folder, &copy)?;
                root.insert(copy);
            }
        } else if page.hosts.is_empty() {
            made::write(&self.root, page.name)?;
        } else {
            let number = self.spread.len();
            if let Entry::Vacant(spread) = self.spread.entry((page.name, page.hosts.len())) {
                let folder = self.root.with_extension(format!("hosts{number}"));
                let document = write_spread(&folder, page.name, &page.hosts)?;
                spread.insert(Spread { folder, document });
            }
        }
        Ok(())
    }

    /// Document root of a page; without a page, the common one.
    #[must_use]
    pub fn root_of(&self, page: Option<PageName>) -> &Path {
        page.and_then(|page| self.folders.get(&page)).unwrap_or(&self.root)
    }

    /// Answer list for the server of this number; `None` if the page has one host.
    #[must_use]
    pub fn answers_of(&self, job: &Job, number: u32) -> Option<PathBuf> {
        let page = job.page()?;
        let spread = self.spread.get(&(page.name, page.hosts.len()))?;
        Some(hosts::list(&spread.folder, number as usize))
    }

    /// Path of a page's document on its server, with the query.
    #[must_use]
    pub fn path_of(&self, page: &LoadedPage) -> String {
        let spread = self.spread.get(&(page.name, page.hosts.len()));
        spread.map_or_else(|| wirelab_pages::path(page.name), |spread| spread.document.clone())
    }

    /// SHA-256 of a response of `size` bytes, hexadecimal; `None` for a size that is not in the plan.
    #[must_use]
    pub fn digest(&self, size: u64) -> Option<&str> {
        self.digests.get(&size).map(String::as_str)
    }
}

/// Writes the answers of a page's hosts; returns the path of its document.
fn write_spread(folder: &Path, page: PageName, hosts: &[String]) -> Result<String, RunError> {
    let PageName::Archive(path) = page else {
        hosts::write(folder, &answers::made(page, hosts))?;
        return Ok(wirelab_pages::path(page));
    };
    let archive = archives::read(path)?;
    if archive.hosts != hosts {
        let why = format!("the page `{page}` has other hosts than when the run was made; make a new one");
        return Err(RunError::Refused { why });
    }
    hosts::write(folder, &archive.answers)?;
    Ok(archive.document)
}

/// Rejects a plan with bodies larger than [`LARGEST`], or with invalid pages.
///
/// # Errors
/// If a cell is invalid; the message names it.
pub fn check(plan: &Plan) -> Result<(), RunError> {
    for cell in &plan.cells {
        if let Some(PageName::Folder(folder)) = cell.job.page().map(|page| page.name) {
            folder::check(folder)?;
        }
        for size in cell.job.work.body_sizes() {
            if size > LARGEST {
                let label = cell.label();
                return Err(RunError::Refused {
                    why: format!(
                        "the cell `{label}` has a body of {size}; the largest is {LARGEST}. Send more requests instead"
                    ),
                });
            }
        }
    }
    Ok(())
}

/// File name of the document with this number of bytes.
#[must_use]
pub fn name(size: u64) -> String {
    format!("{size}.bin")
}

/// A multiple of the pattern's period, so that one buffer serves every offset.
const PIECE: usize = 251 * 256;

/// Passes the first `size` bytes of the pattern to `take`, piece by piece.
fn pieces<E>(size: u64, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let piece = pattern::body(PIECE);
    let mut left = size;
    while left > 0 {
        let length = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        take(&piece[..length])?;
        left -= length as u64;
    }
    Ok(())
}

fn write(path: &Path, size: u64) -> Result<(), RunError> {
    if path.exists() {
        return Ok(());
    }
    File::create(path)
        .and_then(|mut file| pieces(size, |piece| file.write_all(piece)))
        .map_err(RunError::io("cannot write the document", path))
}

/// SHA-256 of the first `size` bytes of the pattern, hexadecimal.
#[must_use]
pub fn digest(size: u64) -> String {
    let mut context = Context::new(&SHA256);
    let Ok(()) = pieces(size, |piece| {
        context.update(piece);
        Ok::<_, std::convert::Infallible>(())
    });
    hexadecimal(context.finish().as_ref())
}

/// SHA-256 of bytes, hexadecimal.
#[must_use]
pub fn digest_of(bytes: &[u8]) -> String {
    hexadecimal(ring::digest::digest(&SHA256, bytes).as_ref())
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_nothing_is_the_published_one() {
        // FIPS 180-4, the hash of the empty message.
        assert_eq!(digest(0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }

    #[test]
    fn the_digest_is_that_of_the_pattern_across_pieces() {
        for size in [1, 250, PIECE, PIECE + 1, 3 * PIECE + 17] {
            let whole = ring::digest::digest(&SHA256, &pattern::body(size));
            assert_eq!(digest(size as u64), hexadecimal(whole.as_ref()), "{size} bytes");
        }
    }

    #[test]
    fn a_document_has_the_content_of_the_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name(100_000));
        write(&path, 100_000).unwrap();
        assert_eq!(fs::read(path).unwrap(), pattern::body(100_000));
    }
}

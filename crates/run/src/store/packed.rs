//! Files of archives: compressed, the same bytes each time.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};

/// The largest file that is unpacked. A journal of this size has more than a hundred thousand trials.
const LARGEST: u64 = 1 << 30;

/// Packs bytes, always the same way: without a name and a time.
pub(crate) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    packer.finish()
}

/// Unpacks a file.
pub(crate) fn unpack(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(File::open(path)?).take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it has more than 1 GiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn packing_depends_on_nothing_but_the_bytes_and_is_undone_by_unpacking() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packed");
        let bytes = b"line\n".repeat(1000);
        let packed = pack(&bytes).unwrap();
        assert!(packed.len() < 100 && packed == pack(&bytes).unwrap());
        fs::write(&path, packed).unwrap();
        assert_eq!(unpack(&path).unwrap(), bytes);
    }
}

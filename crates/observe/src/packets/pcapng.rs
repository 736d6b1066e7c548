//! Captures as pcapng files (draft-ietf-opsawg-pcapng), with four kinds of blocks. TLS secrets are embedded (Decryption
//! Secrets Block), so Wireshark decrypts the capture without further settings. The crate `pcap-file` has no such block.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;

/// The byte-order magic.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Bytes of our section header: 12 of every block, the magic, the version, the section's length.
const SECTION_HEADER_LENGTH: u64 = 12 + 4 + 4 + 8;

/// The kind of interface: Ethernet.
const ETHERNET: u16 = 1;

/// Options of an interface: its name, and the time stamps' unit as a negative power of ten.
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const NANOSECONDS: u8 = 9;

/// The option with a packet's direction.
const EPB_FLAGS: u16 = 2;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// "TLSK": a key log in the format that browsers write.
const TLS_KEY_LOG: u32 = 0x544c_534b;

/// A capture that is being written.
#[derive(Debug)]
pub(crate) struct Writer(BufWriter<File>);

impl Writer {
    /// Creates a file with one interface.
    pub(crate) fn create(path: &Path, interface: &str) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 18, File::create(path)?);
        let mut section = BYTE_ORDER.to_le_bytes().to_vec();
        section.extend([1, 0, 0, 0]);
        // -1: the section's length is not specified.
        section.extend((-1_i64).to_le_bytes());
        block(&mut out, SECTION_HEADER, &[&section])?;
        let mut description = ETHERNET.to_le_bytes().to_vec();
        // Reserved, then no limit on the captured length.
        description.extend([0; 6]);
        option(&mut description, IF_NAME, interface.as_bytes());
        option(&mut description, IF_TSRESOL, &[NANOSECONDS]);
        description.extend([0; 4]);
        block(&mut out, INTERFACE_DESCRIPTION, &[&description])?;
        Ok(Self(out))
    }

    /// Adds a frame. `at_ns`: the kernel's time stamp in nanoseconds of Unix time; `bytes`: the captured part;
    /// `length`: the whole length.
    pub(crate) fn frame(&mut self, at_ns: u64, bytes: &[u8], length: u32, is_sent: bool) -> io::Result<()> {
        let mut head = Vec::with_capacity(20);
        let words = [0, (at_ns >> 32) as u32, at_ns as u32, bytes.len() as u32, length];
        head.extend(words.into_iter().flat_map(u32::to_le_bytes));
        let mut options = vec![0; padding(bytes.len())];
        option(&mut options, EPB_FLAGS, &(if is_sent { OUTBOUND } else { INBOUND }).to_le_bytes());
        options.extend([0; 4]);
        block(&mut self.0, ENHANCED_PACKET, &[&head, bytes, &options])
    }

    /// Flushes the file.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Copies a capture and inserts the key log before its first packet, where readers need it.
pub(crate) fn with_secrets(capture: &Path, secrets: &[u8], path: &Path) -> io::Result<()> {
    let mut from = File::open(capture)?;
    let mut head = vec![0; SECTION_HEADER_LENGTH as usize];
    from.read_exact(&mut head)?;
    let mut to = File::create(path)?;
    to.write_all(&head)?;
    if !secrets.is_empty() {
        let mut body = TLS_KEY_LOG.to_le_bytes().to_vec();
        body.extend((secrets.len() as u32).to_le_bytes());
        block(&mut to, DECRYPTION_SECRETS, &[&body, secrets, &vec![0; padding(secrets.len())]])?;
    }
    from.seek(SeekFrom::Start(SECTION_HEADER_LENGTH))?;
    io::copy(&mut from, &mut to).map(|_| ())
}

/// Writes a block: kind, length, body (a multiple of four bytes), and length again.
fn block(out: &mut impl Write, kind: u32, body: &[&[u8]]) -> io::Result<()> {
    let length = 12 + body.iter().map(|part| part.len()).sum::<usize>() as u32;
    debug_assert_eq!(length % 4, 0, "a block is padded");
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    for part in body {
        out.write_all(part)?;
    }
    out.write_all(&length.to_le_bytes())
}

fn option(to: &mut Vec<u8>, code: u16, value: &[u8]) {
    to.extend(code.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend(value);
    to.extend(vec![0; padding(value.len())]);
}

const fn padding(length: usize) -> usize {
    length.wrapping_neg() % 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a file: kind and body.
    fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut blocks = Vec::new();
        while !bytes.is_empty() {
            let length = word(bytes, 4) as usize;
            assert_eq!(word(bytes, length - 4) as usize, length, "both lengths of a block");
            assert_eq!(length % 4, 0);
            blocks.push((word(bytes, 0), bytes[8..length - 4].to_vec()));
            bytes = &bytes[length..];
        }
        blocks
    }

    #[test]
    fn secrets_come_before_packets_and_both_lengths_of_a_block_agree() {
        let folder = tempfile::tempdir().unwrap();
        let [body, whole] = ["body", "whole"].map(|name| folder.path().join(name));
        let mut writer = Writer::create(&body, "eth0").unwrap();
        let at = (5_u64 << 32) + 7;
        writer.frame(at, b"12345", 60, true).unwrap();
        writer.frame(at, b"1234", 4, false).unwrap();
        writer.finish().unwrap();
        let secrets = b"CLIENT_RANDOM aa bb\n";
        with_secrets(&body, secrets, &whole).unwrap();
        let blocks = blocks(&std::fs::read(&whole).unwrap());
        let kinds: Vec<_> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 10, 1, 6, 6]);
        assert_eq!(&blocks[1].1[..4], b"KSLT", "TLSK, the lowest byte first");
        assert_eq!(&blocks[1].1[8..8 + secrets.len()], secrets);
        let packet: Vec<_> = blocks[3].1.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(packet[..5], [0, 5, 7, 5, 60]);
        assert_eq!(&blocks[3].1[20..25], b"12345");
    }

    #[test]
    fn a_capture_without_tls_has_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let [body, whole] = ["body", "whole"].map(|name| folder.path().join(name));
        Writer::create(&body, "eth0").unwrap().finish().unwrap();
        with_secrets(&body, b"", &whole).unwrap();
        assert_eq!(std::fs::read(&whole).unwrap(), std::fs::read(&body).unwrap());
    }
}

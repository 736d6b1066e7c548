//! Requests of HTTP/1.1.

use std::io::Result;

use super::server::{self, Wire, read};

/// Reads requests with `content-length`, or without a body.
pub(super) struct Requests;

impl server::Requests for Requests {
    fn next(&mut self, wire: &mut dyn Wire) -> Result<u32> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(read(wire, 1)?);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        read(wire, length.unwrap_or(0))?;
        Ok(0)
    }

    fn well(&self, _: u32) -> Vec<u8> {
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()
    }

    fn opening(&self) -> Vec<u8> {
        Vec::new()
    }
}

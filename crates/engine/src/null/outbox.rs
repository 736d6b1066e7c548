//! The bytes that a connection has to send: heads and small bodies together, a large body where it lies.

use crate::payload::Payload;

/// The beginning of a body that goes into the same write as its head, in bytes.
const WITH_HEAD: u64 = 16 * 1024;

/// The output of a connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    /// Bytes of `bytes` that were sent.
    sent: usize,
    /// A body that follows, and its next byte.
    body: Option<(Payload, u64)>,
}

impl Outbox {
    /// Appends bytes. Only without a following body.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a body. Only without a following body.
    pub fn body(&mut self, payload: &Payload) {
        self.bytes.extend_from_slice(payload.slice(0, WITH_HEAD));
        if payload.size() > WITH_HEAD {
            self.body = Some((payload.clone(), WITH_HEAD));
        }
    }

    /// Whether a body follows the bytes.
    pub const fn has_body(&self) -> bool {
        self.body.is_some()
    }

    /// The next bytes to send; empty if nothing is left.
    pub fn output(&self) -> &[u8] {
        match &self.body {
            Some((payload, at)) if self.bytes.is_empty() => payload.slice(*at, u64::MAX),
            _ => &self.bytes[self.sent..],
        }
    }

    /// Removes the first bytes of the output.
    pub fn sent(&mut self, count: usize) {
        if !self.bytes.is_empty() {
            self.sent += count;
            if self.sent == self.bytes.len() {
                self.bytes.clear();
                self.sent = 0;
            }
        } else if let Some((payload, at)) = &mut self.body {
            *at += count as u64;
            if *at == payload.size() {
                self.body = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wirelab_contract::pattern;

    use super::*;

    #[test]
    fn a_large_body_follows_its_head_whatever_the_kernel_takes() {
        for size in [0, 1, WITH_HEAD, WITH_HEAD + 1, 700_000] {
            let mut outbox = Outbox::default();
            outbox.push(b"head");
            outbox.body(&Payload::Pattern(size));
            let mut sent = Vec::new();
            while !outbox.output().is_empty() {
                let count = outbox.output().len().min(10_007);
                sent.extend_from_slice(&outbox.output()[..count]);
                outbox.sent(count);
            }
            assert!(!outbox.has_body());
            assert!(sent == [b"head", &pattern::body(size as usize)[..]].concat());
        }
    }
}

//! The framing of gRPC's messages (gRPC, `PROTOCOL-HTTP2.md`).

use crate::refusal::Refusal;

/// Size of what precedes a message: whether it is compressed, and its length.
pub(crate) const PREFIX: usize = 5;

/// Appends a message behind its prefix.
///
/// # Errors
///
/// [`Refusal`] if it is too long for its prefix.
pub fn frame(framed: &mut Vec<u8>, message: &[u8]) -> Result<(), Refusal> {
    let length = u32::try_from(message.len()).map_err(|_| Refusal::unsupported("a message of 4 GiB or more"))?;
    framed.push(0);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    Ok(())
}

/// The messages behind their prefixes; `None` if the last one is incomplete.
#[must_use]
pub fn split(mut framed: &[u8]) -> Option<Vec<&[u8]>> {
    let mut messages = Vec::new();
    while let Some(([_, length @ ..], rest)) = framed.split_first_chunk::<PREFIX>() {
        let (message, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        messages.push(message);
        framed = rest;
    }
    framed.is_empty().then_some(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framed_messages_are_the_ones_that_were_framed() {
        let messages = [&b""[..], b"one", &[7; 300]];
        let mut framed = Vec::new();
        messages.iter().for_each(|message| frame(&mut framed, message).unwrap());
        assert_eq!(split(&framed).unwrap(), messages);
        assert_eq!(split(&[]).unwrap(), Vec::<&[u8]>::new());
        for cut in 1..5 {
            assert_eq!(split(&framed[..framed.len() - cut]), None);
        }
        assert_eq!(split(&framed[..3]), None);
    }
}

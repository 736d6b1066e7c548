//! Which header fields a message of HTTP/2 or HTTP/3 may have (RFC 9113, section 8.2; RFC 9114, section 4.2).

/// A flaw of a message whose fields can be decoded.
pub(crate) type Flaw = &'static str;

pub(crate) const TWICE: Flaw = "it has a pseudo-header field twice";
pub(crate) const LATE: Flaw = "a pseudo-header field follows other fields";
pub(crate) const UNKNOWN: Flaw = "it has a pseudo-header field that responses do not have";
pub(crate) const STATUS: Flaw = "its status is no number from 100 to 999";
pub(crate) const LENGTH: Flaw = "its field `content-length` is no number";
pub(crate) const LENGTHS: Flaw = "its fields `content-length` contradict each other";
pub(crate) const CONNECTION: Flaw = "it has a field that concerns the connection, such as `connection`";
const NAME: Flaw = "the name of a field has a capital letter, or a character that names must not have";
const VALUE: Flaw = "the value of a field has a character that values must not have";

/// Fields of HTTP/1.1 that other versions must not have.
const OF_CONNECTION: [&[u8]; 5] = [b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"];

/// The flaw of a field's name, if any. The names of pseudo-header fields are not checked.
pub(crate) fn name(name: &[u8]) -> Option<Flaw> {
    if name.is_empty() || name.iter().any(|byte| matches!(byte, 0..=0x20 | b':' | b'A'..=b'Z' | 0x7f..)) {
        return Some(NAME);
    }
    OF_CONNECTION.contains(&name).then_some(CONNECTION)
}

/// The flaw of a field's value, if any.
pub(crate) fn value(value: &[u8]) -> Option<Flaw> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_wrong = value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    (is_wrong || is_space(value.first()) || is_space(value.last())).then_some(VALUE)
}

/// The status of a text.
pub(crate) fn status(text: &[u8]) -> Result<u16, Flaw> {
    let is_status = text.len() == 3 && text.iter().all(u8::is_ascii_digit) && text[0] != b'0';
    number(text).filter(|_| is_status).and_then(|number| number.try_into().ok()).ok_or(STATUS)
}

/// The number of a text, which has digits only.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_number)?.parse().ok()
}

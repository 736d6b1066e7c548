//! Parts of inputs.

/// Inputs of text.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The text of an input.
pub fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// Divides an input: a byte with a length, a part of at most that length, and the rest.
pub fn part(input: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = input.split_first()?;
    Some(rest.split_at(rest.len().min(usize::from(*length))))
}

/// An input with a first part of less than 256 bytes.
pub fn with_part(part: &[u8], rest: &[u8]) -> Vec<u8> {
    [&[part.len() as u8], part, rest].concat()
}

/// Divides bytes into pieces of these sizes, which repeat. A size of 0 is the rest.
pub fn pieces<'a>(mut bytes: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes =
        sizes.iter().cycle().map(|size| usize::from(*size)).map(|size| if size == 0 { usize::MAX } else { size });
    std::iter::from_fn(move || {
        let size = sizes.next().unwrap_or(usize::MAX).min(bytes.len());
        let (now, later) = bytes.split_at(size);
        bytes = later;
        (!now.is_empty()).then_some(now)
    })
}

//! Header fields of quiche's HTTP/3.

use std::str::FromStr;

use quiche::h3::{Header, NameValue};
use wirelab_endpoint::program::Recipe;

/// The header fields of a request, pseudo-header fields first (RFC 9114, section 4.3.1).
#[must_use]
pub fn request(recipe: &Recipe) -> Vec<Header> {
    let head = recipe.head_with_length();
    let uri = head.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let pseudo = [
        (":method", head.method().as_str()),
        (":scheme", uri.scheme_str().unwrap_or("https")),
        (":authority", uri.authority().map_or("", |authority| authority.as_str())),
        (":path", path),
    ];
    let pseudo = pseudo.iter().map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
    pseudo.chain(head.headers().iter().map(|(name, value)| Header::new(name.as_ref(), value.as_bytes()))).collect()
}

/// The header fields of a response, with the length of its body where that is known, and `more`.
#[must_use]
pub fn response(status: u16, length: Option<u64>, more: &[(&str, &str)]) -> Vec<Header> {
    let field = |name: &str, value: &str| Header::new(name.as_bytes(), value.as_bytes());
    let mut fields = vec![field(":status", &status.to_string())];
    fields.extend(length.map(|length| field("content-length", &length.to_string())));
    fields.extend(more.iter().map(|(name, value)| field(name, value)));
    fields
}

/// The value of a field, if it is text.
#[must_use]
pub fn text<'a>(fields: &'a [Header], name: &[u8]) -> Option<&'a str> {
    let field = fields.iter().find(|field| field.name() == name)?;
    std::str::from_utf8(field.value()).ok()
}

/// The value of a field, if it is such a number.
#[must_use]
pub fn number<T: FromStr>(fields: &[Header], name: &[u8]) -> Option<T> {
    text(fields, name)?.parse().ok()
}

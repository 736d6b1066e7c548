//! The messages between endpoints and wirelab: descriptions, specs, events, samples and histograms, with the words that
//! these need. Endpoints depend on this crate and on nothing else of wirelab's types.
//!
//! The crate is pure: no input or output, no clock, no randomness. `schemars` derives the published JSON Schemas in
//! `contract/schema/` from it.

pub mod endpoint;
pub mod error_kind;
pub mod event;
pub mod exposition;
pub mod heron;
pub mod histogram;
pub mod mix;
pub mod page;
pub mod pattern;
mod plain;
pub mod protocol;
pub mod relocate;
pub mod sample;
pub mod spec;
pub mod totals;
pub mod transport;
pub mod via;

/// Whether a JSON text is rejected because it has a field or a value that this build does not know. serde_json counts a
/// missing field as wrong data, too; only its message tells them apart.
#[must_use]
pub fn is_unknown(error: &serde_json::Error) -> bool {
    error.is_data() && !error.to_string().starts_with("missing field")
}

/// The version of the endpoint contract that this build implements. It changes when an endpoint must change.
pub const CONTRACT_VERSION: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_field_and_broken_json_are_not_unknown() {
        let read = |text: &str| serde_json::from_str::<endpoint::Description>(text).unwrap_err();
        let whole = r#"{"contract":1,"name":"a","library":"b","version":"1","language":"sh""#;
        for (text, expected) in [
            ("{}".to_owned(), false),
            ("{".to_owned(), false),
            (format!(r#"{whole},"server":{{"protocols":["h9"],"features":[]}}}}"#), true),
        ] {
            assert_eq!(is_unknown(&read(&text)), expected, "{text}: {}", read(&text));
        }
    }
}

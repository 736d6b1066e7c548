//! The service `heron`: the square root of a number by Heron's method, and what its requests and answers look like.

use crate::protocol::Protocol;

/// The number of every study. An answer is as small, and takes as few divisions, for any other.
pub const NUMBER: f64 = 2.0;

/// Bytes of protobuf before the eight of a number: field 1, of the wire type that has 64 bits.
const FIELD: u8 = 1 << 3 | 1;

/// The square root of a number as the service computes it; NaN for what has none, as everywhere.
///
/// IEEE 754 defines each of its operations to the last bit, so every implementation comes to the same root.
#[must_use]
pub fn root(number: f64) -> f64 {
    if !(number.is_finite() && number >= 0.0) {
        return f64::NAN;
    }
    if number == 0.0 {
        return 0.0;
    }
    // Never below the root, from where each mean falls towards it until rounding keeps it from falling.
    let mut guess = number.max(1.0);
    loop {
        let mean = (guess + number / guess) / 2.0;
        if mean >= guess {
            return guess;
        }
        guess = mean;
    }
}

/// The path that asks for the root of a number.
#[must_use]
pub fn path(number: f64) -> String {
    format!("/heron/{number}")
}

/// The number of such a path, whether or not it has a root.
#[must_use]
pub fn number(path: &str) -> Option<f64> {
    path.strip_prefix("/heron/")?.parse().ok()
}

/// The body of a request by this protocol.
#[must_use]
pub fn request(protocol: Protocol, number: f64) -> Vec<u8> {
    if protocol.is_grpc() { message(number) } else { Vec::new() }
}

/// The body of the right answer by this protocol.
#[must_use]
pub fn answer(protocol: Protocol, number: f64) -> Vec<u8> {
    let root = root(number);
    if protocol.is_grpc() { message(root) } else { text(root).into_bytes() }
}

/// A root in HTTP. So few decimals that it does not matter how a language rounds the last digits of a number.
#[must_use]
pub fn text(root: f64) -> String {
    format!("{root:.12}")
}

/// A number in gRPC: `google.protobuf.DoubleValue`.
fn message(number: f64) -> Vec<u8> {
    if number == 0.0 {
        // Protobuf leaves out what has its default value.
        return Vec::new();
    }
    [&[FIELD][..], &number.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_right_from_the_smallest_number_to_the_largest() {
        for number in [0.0, 5e-324, 1e-300, 0.25, 1.0, 2.0, 3.0, 4.0, 1e10, 12_345.678, f64::MAX] {
            let (root, exact) = (root(number), number.sqrt());
            assert!((root - exact).abs() <= exact * f64::EPSILON, "{number}: {root}, not {exact}");
        }
        for number in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(root(number).is_nan(), "{number}");
        }
    }

    #[test]
    fn a_number_travels_in_the_path_and_a_root_as_text_or_as_a_message() {
        assert_eq!((path(NUMBER).as_str(), number("/heron/2"), number("/heron/two")), ("/heron/2", Some(NUMBER), None));
        assert_eq!(answer(Protocol::H1, NUMBER), b"1.414213562373");
        // One unit below the double that is nearest to the root, 0x3FF6A09E667F3BCD.
        let message = [9, 0xcc, 0x3b, 0x7f, 0x66, 0x9e, 0xa0, 0xf6, 0x3f];
        assert_eq!(answer(Protocol::Grpc, NUMBER), message);
        assert_eq!((request(Protocol::H1, NUMBER).len(), request(Protocol::Grpc, NUMBER).len()), (0, 9));
    }
}

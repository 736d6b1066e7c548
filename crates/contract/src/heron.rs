//! The service `heron`: square roots by Heron's method, and the form of requests and answers.

use crate::protocol::Protocol;

/// The number whose root studies ask for. Other numbers need as few divisions and give answers of the same size.
pub const NUMBER: f64 = 2.0;

/// The path of the call in gRPC: package, service, method of `contract/heron.proto`.
pub const METHOD: &str = "/wirelab.Heron/SquareRoot";

/// The protobuf tag before the eight bytes of a number: field 1, wire type 64-bit.
const FIELD: u8 = 1 << 3 | 1;

/// The square root of a number as the service computes it; NaN for a number without a root.
///
/// IEEE 754 defines each of the operations to the last bit, so every implementation returns the same root.
#[must_use]
pub fn root(number: f64) -> f64 {
    if !(number.is_finite() && number >= 0.0) {
        return f64::NAN;
    }
    if number == 0.0 {
        return 0.0;
    }
    // Starts at or above the root; each mean falls towards the root until rounding stops it.
    let mut guess = number.max(1.0);
    loop {
        let mean = (guess + number / guess) / 2.0;
        if mean >= guess {
            return guess;
        }
        guess = mean;
    }
}

/// The path of a request for the root of a number.
#[must_use]
pub fn path(number: f64) -> String {
    format!("/heron/{number}")
}

/// The number in such a path, with or without a root.
#[must_use]
pub fn number(path: &str) -> Option<f64> {
    path.strip_prefix("/heron/")?.parse().ok()
}

/// The body of a request in this protocol.
#[must_use]
pub fn request(protocol: Protocol, number: f64) -> Vec<u8> {
    if protocol.is_grpc() { message(number) } else { Vec::new() }
}

/// The body of the correct answer in this protocol.
#[must_use]
pub fn answer(protocol: Protocol, number: f64) -> Vec<u8> {
    let root = root(number);
    if protocol.is_grpc() { message(root) } else { text(root).into_bytes() }
}

/// A root as text for HTTP. Twelve decimals, so that languages may round the last digits of a number differently.
#[must_use]
pub fn text(root: f64) -> String {
    format!("{root:.12}")
}

/// A number in gRPC: `google.protobuf.DoubleValue`.
fn message(number: f64) -> Vec<u8> {
    if number == 0.0 {
        // Protobuf omits fields with their default value.
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
    fn a_number_is_in_the_path_and_a_root_is_text_or_a_message() {
        assert_eq!((path(NUMBER).as_str(), number("/heron/2"), number("/heron/two")), ("/heron/2", Some(NUMBER), None));
        assert_eq!(answer(Protocol::H1, NUMBER), b"1.414213562373");
        // One unit below the double that is nearest to the root, 0x3FF6A09E667F3BCD.
        let message = [9, 0xcc, 0x3b, 0x7f, 0x66, 0x9e, 0xa0, 0xf6, 0x3f];
        assert_eq!(answer(Protocol::Grpc, NUMBER), message);
        assert_eq!((request(Protocol::H1, NUMBER).len(), request(Protocol::Grpc, NUMBER).len()), (0, 9));
    }
}

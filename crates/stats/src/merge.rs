//! Merges the results of several clients into those of one client: histograms are added bucket by bucket. A percentile
//! of the sum is a percentile of all requests; an average of percentiles is not.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use wirelab_model::histogram::{Histogram, Histograms};

use crate::histogram_error::HistogramError;
use crate::summary::{Recorded, decode};

/// Adds histograms and counts.
///
/// # Errors
/// If a histogram cannot be decoded, or a sum is too large; the results of a client are then unusable.
pub fn merge_histograms(all: &[Histograms]) -> Result<Histograms, HistogramError> {
    let sum = |name, of: fn(&Histograms) -> &Histogram| added(name, all.iter().map(of));
    let count = |of: fn(&Histograms) -> u64| all.iter().map(of).try_fold(0, plus);
    let mut sums = Histograms {
        response: sum("response", |one| &one.response)?,
        service: sum("service", |one| &one.service)?,
        lag: sum("lag", |one| &one.lag)?,
        handshake: sum("handshake", |one| &one.handshake)?,
        first_byte: sum("first_byte", |one| &one.first_byte)?,
        failure: sum("failure", |one| &one.failure)?,
        requests: count(|one| one.requests)?,
        errors: Default::default(),
        bytes_in: count(|one| one.bytes_in)?,
        bytes_out: count(|one| one.bytes_out)?,
        connections: count(|one| one.connections)?,
        handshakes: Default::default(),
    };
    for one in all {
        for (kind, count) in &one.errors {
            let sum = sums.errors.entry(*kind).or_default();
            *sum = plus(*sum, *count)?;
        }
        for (handshake, count) in &one.handshakes {
            let sum = sums.handshakes.entry(*handshake).or_default();
            *sum = plus(*sum, *count)?;
        }
    }
    Ok(sums)
}

fn plus(one: u64, other: u64) -> Result<u64, HistogramError> {
    one.checked_add(other).ok_or(HistogramError::TooLarge)
}

fn added<'a>(name: &'static str, all: impl Iterator<Item = &'a Histogram>) -> Result<Histogram, HistogramError> {
    let mut buckets = hdrhistogram::Histogram::<u64>::new(3).expect("three digits are allowed");
    let mut sum = Histogram { min_ns: u64::MAX, ..Histogram::default() };
    for one in all {
        let Recorded::Quantised(more, facts) = decode(name, one)? else { continue };
        buckets.add(&more).map_err(|cause| HistogramError::NotAdded { name, cause })?;
        sum.count = plus(sum.count, facts.count)?;
        sum.min_ns = sum.min_ns.min(facts.min_ns);
        sum.max_ns = sum.max_ns.max(facts.max_ns);
        sum.sum_ns = plus(sum.sum_ns, facts.sum_ns)?;
    }
    if sum.count == 0 {
        return Ok(Histogram::default());
    }
    let mut bytes = Vec::new();
    let written = V2Serializer::new().serialize(&buckets, &mut bytes);
    written.map_err(|cause| HistogramError::NotWritten { name, cause })?;
    Ok(Histogram { v2: BASE64_STANDARD.encode(bytes), ..sum })
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use wirelab_model::outcome::ErrorKind;
    use wirelab_model::sample::Handshake;

    use super::*;
    use crate::{response_counts, summarise_histograms};

    /// A client with these response times, and a failure.
    fn client(times: &[u64]) -> Histograms {
        let of = |values: &[u64]| {
            let mut buckets = hdrhistogram::Histogram::<u64>::new(3).unwrap();
            values.iter().for_each(|value| buckets.record(*value).unwrap());
            let mut bytes = Vec::new();
            V2Serializer::new().serialize(&buckets, &mut bytes).unwrap();
            Histogram {
                v2: BASE64_STANDARD.encode(bytes),
                count: values.len() as u64,
                min_ns: values.iter().copied().min().unwrap(),
                max_ns: values.iter().copied().max().unwrap(),
                sum_ns: values.iter().sum(),
            }
        };
        Histograms {
            response: of(times),
            service: of(times),
            lag: of(&[0]),
            handshake: Histogram::default(),
            first_byte: of(times),
            failure: of(&[7]),
            requests: times.len() as u64,
            errors: IndexMap::from([(ErrorKind::Timeout, 1)]),
            bytes_in: 10,
            bytes_out: 1,
            connections: 2,
            handshakes: IndexMap::from([(Handshake::Full, 2)]),
        }
    }

    #[test]
    fn percentiles_are_those_of_all_requests_and_not_an_average_of_percentiles() {
        // The median of the many is 1 ms and that of the few 100 ms: of all it is 1 ms, not something between.
        let (many, few) = (client(&[1_000_000; 99]), client(&[100_000_000; 10]));
        let both = merge_histograms(&[many, few]).unwrap();
        let values = summarise_histograms(&both, 1_000_000_000).unwrap();
        let number = |name: &str| values[name].number().unwrap();
        assert!((number("response_median") - 1e6).abs() < 1e4, "{}", number("response_median"));
        assert_eq!((number("response_min"), number("response_max")), (1e6, 1e8), "exact, not those of buckets");
        assert_eq!(number("response_mean"), (99.0 * 1e6 + 10.0 * 1e8) / 109.0);
        assert_eq!((both.requests, both.bytes_in, both.bytes_out, both.connections), (109, 20, 2, 4));
        assert_eq!((both.errors[&ErrorKind::Timeout], both.handshakes[&Handshake::Full]), (2, 4));
        assert_eq!(response_counts(&both).unwrap().iter().map(|(_, count)| count).sum::<u64>(), 109);
        assert_eq!((both.handshake.count, both.handshake.v2.as_str()), (0, ""), "nothing of nothing");
    }

    #[test]
    fn one_client_stays_unchanged_and_a_broken_histogram_is_an_error() {
        let one = client(&[5, 7_000_000, 9_000_000_000]);
        let alone = merge_histograms(std::slice::from_ref(&one)).unwrap();
        assert_eq!(response_counts(&alone).unwrap(), response_counts(&one).unwrap());
        let broken = Histograms { service: Histogram { v2: "?".to_owned(), ..one.service.clone() }, ..one.clone() };
        assert!(merge_histograms(&[one, broken]).unwrap_err().to_string().contains("`service` is unusable"));
    }

    #[test]
    fn sums_that_no_clients_reach_are_an_error() {
        let one = client(&[5]);
        let endless = Histogram { sum_ns: u64::MAX, ..one.response.clone() };
        for wrong in [
            Histograms { response: endless, ..one.clone() },
            Histograms { bytes_in: u64::MAX, ..one.clone() },
            Histograms { errors: IndexMap::from([(ErrorKind::Timeout, u64::MAX)]), ..one.clone() },
        ] {
            assert!(matches!(merge_histograms(&[one.clone(), wrong]), Err(HistogramError::TooLarge)));
        }
    }
}

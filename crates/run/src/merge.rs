//! The records of several clients of a trial as those of one: on one clock, with connections of their own.

use std::path::PathBuf;

use wirelab_model::sample::Sample;
use wirelab_model::spec::Recording;
use wirelab_model::timeline::Played;

use crate::results::{self, Results};
use crate::spec::{Files, results_of};

/// Reads what each client wrote, and notes the number of its first connection.
///
/// # Errors
/// If one of them wrote nothing usable; says which.
pub(crate) fn read(files: &Files, played: &mut Played) -> Result<Results, String> {
    let mut all = Vec::new();
    let mut connections = 0;
    for (number, client) in (0..).zip(&mut played.clients) {
        let path: PathBuf = results_of(files, number);
        let read = results::read(&path, Recording::Samples).map_err(|why| format!("number {number}: {why}"))?;
        let Results::Samples(samples) = read else { return Err(format!("number {number}: it wrote no samples")) };
        client.first_connection = connections;
        connections += samples.iter().map(|sample| sample.connection + 1).max().unwrap_or_default();
        all.extend(samples.into_iter().map(|sample| moved(sample, client.from_ns, client.first_connection)));
    }
    all.sort_by_key(|sample: &Sample| sample.start_ns);
    Ok(Results::Samples(all))
}

fn moved(sample: Sample, by_ns: u64, first_connection: u32) -> Sample {
    let later = |ns: Option<u64>| ns.map(|ns| ns + by_ns);
    Sample {
        intended_ns: sample.intended_ns + by_ns,
        start_ns: sample.start_ns + by_ns,
        connected_ns: later(sample.connected_ns),
        handshake_ns: later(sample.handshake_ns),
        first_byte_ns: later(sample.first_byte_ns),
        last_byte_ns: sample.last_byte_ns + by_ns,
        connection: sample.connection + first_connection,
        ..sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_moves_by_the_same_and_durations_stay() {
        let sample: Sample = serde_json::from_str(
            r#"{"intended_ns":1,"start_ns":2,"connected_ns":3,"first_byte_ns":5,"last_byte_ns":8,"bytes_out":0,"bytes_in":3,"connection":4}"#,
        )
        .unwrap();
        let moved = moved(sample.clone(), 100, 10);
        assert_eq!((moved.intended_ns, moved.start_ns, moved.connected_ns), (101, 102, Some(103)));
        assert_eq!((moved.handshake_ns, moved.first_byte_ns, moved.last_byte_ns), (None, Some(105), 108));
        assert_eq!((moved.connection, moved.response_ns(), moved.service_ns()), (14, 7, 6));
        assert_eq!(moved.check(), Ok(()));
    }
}

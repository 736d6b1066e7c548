//! Transport statistics of one connection, and their sum over many.

use std::os::fd::RawFd;

use wirelab_contract::transport::TransportReport;

/// Transport statistics of a connection. Unknown values are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// The smallest round trip, in nanoseconds.
    pub round_trip_min: Option<u64>,
    /// The smoothed round trip, in nanoseconds.
    pub round_trip: Option<u64>,
    /// Packets or segments sent so far.
    pub sent: Option<u64>,
    /// Packets lost (QUIC) or segments retransmitted (TCP) so far.
    pub lost: Option<u64>,
    /// Bytes in lost packets or retransmitted segments.
    pub bytes_lost: Option<u64>,
    /// Congestion events so far.
    pub congestion_events: Option<u64>,
    /// The congestion window, in bytes.
    pub window: Option<u64>,
    /// The largest payload that one packet may carry, in bytes.
    pub payload: Option<u64>,
}

impl Reading {
    /// Reads `TCP_INFO` (tcp(7)) with one system call. Kernels before 4.2 lack segments sent, before 4.6 the smallest
    /// round trip, before 4.19 bytes retransmitted. `socket` must be an open socket; one of another kind has no values.
    pub fn of_socket(socket: RawFd) -> Self {
        // SAFETY: `tcp_info` consists of integers only, for which zeros are values.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `info`, whose size that is, and the length that it wrote
        // to `length`; both live through the call.
        let status = unsafe {
            libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut length)
        };
        if status < 0 { Self::default() } else { Self::of_info(&info, length as usize) }
    }

    /// Decodes the first `length` bytes of `info`, which the kernel wrote.
    fn of_info(info: &libc::tcp_info, length: usize) -> Self {
        // A field is known if the kernel wrote all of it.
        macro_rules! known {
            ($field:ident: $type:ty) => {
                (std::mem::offset_of!(libc::tcp_info, $field) + size_of::<$type>() <= length)
                    .then_some(u64::from(info.$field))
            };
        }
        // The kernel's values for "no sample yet".
        let sampled = |us: &u64| *us > 0 && *us != u64::from(u32::MAX);
        let segment = known!(tcpi_snd_mss: u32).filter(|size| *size > 0);
        Self {
            round_trip_min: known!(tcpi_min_rtt: u32).filter(sampled).map(|us| us * 1000),
            round_trip: known!(tcpi_rtt: u32).filter(sampled).map(|us| us * 1000),
            sent: known!(tcpi_segs_out: u32),
            lost: known!(tcpi_total_retrans: u32),
            bytes_lost: known!(tcpi_bytes_retrans: u64),
            congestion_events: None,
            window: segment
                .zip(known!(tcpi_snd_cwnd: u32))
                .map(|(size, count)| size * count)
                .filter(|window| *window > 0),
            payload: segment,
        }
    }

    /// Counts since `before`, an earlier reading of the same connection; values that are no counters stay.
    fn since(&self, before: &Self) -> Self {
        // An overflown counter is unknown.
        let count = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        Self {
            sent: count(self.sent, before.sent),
            lost: count(self.lost, before.lost),
            bytes_lost: count(self.bytes_lost, before.bytes_lost),
            congestion_events: count(self.congestion_events, before.congestion_events),
            ..*self
        }
    }
}

/// The sum over connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    connections: u64,
    /// Sum of smoothed round trips, and number of connections in it; a connection without a sample is not in it.
    round_trips: (u64, u64),
    round_trip_min: Option<u64>,
    window: Option<u64>,
    payload: Option<u64>,
    sent: Counter,
    lost: Counter,
    bytes_lost: Counter,
    congestion_events: Counter,
}

/// A sum that is unknown if one of its parts is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counter(Option<u64>);

impl Default for Counter {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl Counter {
    fn add(&mut self, part: Option<u64>) {
        self.0 = self.0.zip(part).map(|(sum, part)| sum.saturating_add(part));
    }
}

impl Totals {
    /// Adds a connection: its reading minus the counts `before` the period, if it was open then.
    pub fn add(&mut self, reading: &Reading, before: Option<&Reading>) {
        let reading = before.map_or(*reading, |before| reading.since(before));
        self.connections += 1;
        if let Some(round_trip) = reading.round_trip {
            self.round_trips = (self.round_trips.0.saturating_add(round_trip), self.round_trips.1 + 1);
        }
        self.least_and_largest(reading.round_trip_min, reading.window);
        self.payload = self.payload.max(reading.payload);
        self.sent.add(reading.sent);
        self.lost.add(reading.lost);
        self.bytes_lost.add(reading.bytes_lost);
        self.congestion_events.add(reading.congestion_events);
    }

    /// Adds the totals of other connections.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        let (sum, count) = other.round_trips;
        self.round_trips = (self.round_trips.0.saturating_add(sum), self.round_trips.1 + count);
        self.least_and_largest(other.round_trip_min, other.window);
        self.payload = self.payload.max(other.payload);
        self.sent.add(other.sent.0);
        self.lost.add(other.lost.0);
        self.bytes_lost.add(other.bytes_lost.0);
        self.congestion_events.add(other.congestion_events.0);
    }

    fn least_and_largest(&mut self, round_trip_min: Option<u64>, window: Option<u64>) {
        self.round_trip_min = self.round_trip_min.into_iter().chain(round_trip_min).min();
        self.window = self.window.max(window);
    }

    /// Converts the totals to the contract's report.
    pub fn report(&self) -> TransportReport {
        if self.connections == 0 {
            return TransportReport::default();
        }
        TransportReport {
            connections: self.connections,
            round_trip_min_ns: self.round_trip_min,
            round_trip_ns: self.round_trips.0.checked_div(self.round_trips.1),
            packets_sent: self.sent.0,
            packets_lost: self.lost.0,
            bytes_lost: self.bytes_lost.0,
            congestion_events: self.congestion_events.0,
            congestion_window: self.window,
            payload_max: self.payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_an_old_kernel_does_not_write_is_unknown_and_not_0() {
        // SAFETY: `tcp_info` consists of integers only, for which zeros are values.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        (info.tcpi_rtt, info.tcpi_min_rtt, info.tcpi_snd_mss, info.tcpi_snd_cwnd) = (700, 500, 1448, 10);
        (info.tcpi_segs_out, info.tcpi_total_retrans, info.tcpi_bytes_retrans) = (9, 2, 2896);
        let whole = Reading {
            round_trip_min: Some(500_000),
            round_trip: Some(700_000),
            sent: Some(9),
            lost: Some(2),
            bytes_lost: Some(2896),
            congestion_events: None,
            window: Some(14_480),
            payload: Some(1448),
        };
        assert_eq!(Reading::of_info(&info, size_of::<libc::tcp_info>()), whole);
        // Linux 4.9 wrote 160 bytes (to `tcpi_data_segs_out`), Linux 2.6 wrote 104 (to `tcpi_total_retrans`).
        assert_eq!(Reading::of_info(&info, 160), Reading { bytes_lost: None, ..whole });
        let oldest = Reading { bytes_lost: None, sent: None, round_trip_min: None, ..whole };
        assert_eq!(Reading::of_info(&info, 104), oldest);
        (info.tcpi_rtt, info.tcpi_min_rtt) = (0, u32::MAX);
        let unsampled = Reading::of_info(&info, size_of::<libc::tcp_info>());
        assert_eq!((unsampled.round_trip, unsampled.round_trip_min), (None, None));
    }

    #[test]
    fn counts_before_the_period_are_subtracted_and_round_trips_are_not() {
        let before = Reading { round_trip: Some(90), sent: Some(40), lost: Some(1), ..Reading::default() };
        let after = Reading { round_trip: Some(30), round_trip_min: Some(20), sent: Some(50), lost: Some(1), ..before };
        let mut totals = Totals::default();
        totals.add(&after, Some(&before));
        totals.add(&Reading { round_trip: Some(50), sent: Some(5), lost: Some(2), ..Reading::default() }, None);
        let report = totals.report();
        assert_eq!((report.connections, report.packets_sent, report.packets_lost), (2, Some(15), Some(2)));
        assert_eq!((report.round_trip_ns, report.round_trip_min_ns), (Some(40), Some(20)));
        assert_eq!((report.bytes_lost, report.congestion_events), (None, None));
        let mut twice = totals;
        twice.merge(&totals);
        assert_eq!((twice.report().connections, twice.report().packets_sent), (4, Some(30)));
        assert_eq!(twice.report().round_trip_ns, Some(40));
        assert_eq!(Totals::default().report(), TransportReport::default());
    }
}

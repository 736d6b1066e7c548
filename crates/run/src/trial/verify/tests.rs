use wirelab_model::histogram::Histogram;
use wirelab_model::plan::Work;
use wirelab_model::settings::Exchange;
use wirelab_model::units::Span;

use wirelab_model::warning::Warning;

use super::*;
use crate::fixture::cell;

const WINDOW: u64 = 1_000_000_000;

fn sample(number: u32) -> Sample {
    let start = u64::from(number) * 1_000_000;
    Sample {
        intended_ns: start,
        start_ns: start,
        connected_ns: Some(start + 10),
        handshake_ns: Some(start + 20),
        first_byte_ns: Some(start + 400_000),
        last_byte_ns: start + 500_000,
        request: None,
        bytes_out: 0,
        bytes_in: 1024,
        status: Some(200),
        connection: number,
        handshake: Some(Handshake::Full),
        error: None,
    }
}

fn checked(cell: &Cell, change: impl FnOnce(&mut Vec<Sample>)) -> Checked<Tally> {
    let mut samples: Vec<_> = (0..3).map(sample).collect();
    change(&mut samples);
    results(cell, WINDOW, &Results::Samples(samples))
}

fn refused(cell: &Cell, change: impl FnOnce(&mut Vec<Sample>), blame: Blame, words: &str) {
    match checked(cell, change) {
        Err(Outcome::Failed { blame: found, reason }) => {
            assert!(found == blame && reason.to_string().contains(words), "{found}: {reason}");
        }
        other => panic!("{words}: {other:?}"),
    }
}

#[test]
fn right_records_are_counted() {
    let tally = checked(&cell(), |_| ()).unwrap();
    assert_eq!((tally.ok, tally.failed(), tally.bytes), (3, 0, 3 * 1024));
    assert_eq!(tally.warnings(&cell()), []);
}

#[test]
fn failed_requests_count_by_kind_and_without_bytes() {
    let tally = checked(&cell(), |samples| {
        let failed = &mut samples[1];
        (failed.error, failed.first_byte_ns, failed.bytes_in) = (Some(ErrorKind::Timeout), None, 7);
    })
    .unwrap();
    assert_eq!((tally.ok, tally.failed(), tally.bytes), (2, 1, 2 * 1024));
    let [Warning::RequestsFailed { share, kind, .. }] = &tally.warnings(&cell())[..] else { panic!("{tally:?}") };
    assert!((share - 1.0 / 3.0).abs() < 1e-12 && kind == "timeout");
}

#[test]
fn impossible_records_fail_the_trial_with_the_number_of_the_record() {
    let cell = cell();
    refused(&cell, |s| s[2].connected_ns = Some(0), Blame::Client, "record 3 is impossible: its times");
    refused(&cell, |s| s[0].last_byte_ns = 2 * WINDOW, Blame::Client, "after the window");
    refused(&cell, |s| s[1].bytes_in = 1023, Blame::Client, "1023 bytes instead of 1024");
    refused(&cell, |s| s[1].bytes_out = 5, Blame::Client, "it sent 5 body bytes");
    refused(&cell, |s| s[1].status = Some(404), Blame::Client, "status");
    refused(&cell, |s| s[1].handshake = None, Blame::Client, "how the handshake began");
    refused(&cell, |s| s[1].connection = 0, Blame::Client, "connection 0 again");
    refused(&cell, |s| s[1].handshake = Some(Handshake::Resumed), Blame::Client, "must be new");
    refused(&cell, |s| s.truncate(2), Blame::Client, "2 requests instead of 3");
    refused(&cell, Vec::clear, Blame::Client, "0 requests instead of 3");
}

#[test]
fn a_window_without_requests_is_refused() {
    let mut cell = cell();
    cell.job.load.extent = Extent::DurationNs(WINDOW);
    refused(&cell, Vec::clear, Blame::Client, "no request");
    assert_eq!(checked(&cell, |s| s.truncate(2)).unwrap().ok, 2);
}

#[test]
fn the_server_is_to_blame_for_a_response_before_its_delay() {
    let mut cell = cell();
    let of = |delay| {
        let requests = Requests { exchange: Exchange::Delay, delay: Span(delay), ..Requests::document(Size(0)) };
        Work::Requests(requests)
    };
    cell.job.work = of(400_000);
    let empty = |samples: &mut Vec<Sample>| samples.iter_mut().for_each(|sample| sample.bytes_in = 0);
    assert!(checked(&cell, empty).is_ok());
    cell.job.work = of(401_000);
    refused(&cell, empty, Blame::Server, "had to wait 401000 ns");
}

#[test]
fn missed_resumption_has_a_warning() {
    let mut cell = cell();
    cell.job.load.resumption = Resumption::ZeroRtt;
    let tally = checked(&cell, |s| s[0].handshake = Some(Handshake::EarlyAccepted)).unwrap();
    let [Warning::ResumptionMissed { wanted, share, .. }] = &tally.warnings(&cell)[..] else { panic!("{tally:?}") };
    assert!(wanted == "early_accepted" && (share - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn the_negotiated_protocol_must_be_the_cells() {
    let said = |alpn: serde_json::Value| [("alpn".to_owned(), alpn)].into_iter().collect::<Configured>();
    assert!(negotiated(Protocol::H2, &said("h2".into())).is_ok());
    assert!(negotiated(Protocol::H2, &said("http/1.1".into())).is_err());
    assert!(negotiated(Protocol::H2, &Configured::new()).is_err());
    assert!(negotiated(Protocol::H1c, &Configured::new()).is_ok());
    assert!(negotiated(Protocol::H1c, &said(serde_json::Value::Null)).is_ok());
    assert!(negotiated(Protocol::H1c, &said("h2".into())).is_err());
}

#[test]
fn effective_settings_must_match_the_requested_ones() {
    let asked = Transport { no_delay: Some(true), stream_window: Some(1000), ..Transport::default() };
    let said = |name: &str, value: serde_json::Value| [(name.to_owned(), value)].into_iter().collect::<Configured>();
    for (name, value, honoured) in [
        ("no_delay", true.into(), true),
        ("no_delay", false.into(), false),
        ("stream_window", 1000.into(), true),
        ("stream_window", 2000.into(), true),
        ("stream_window", 999.into(), false),
        ("congestion", "bbr".into(), true),
    ] {
        let checked = in_force(Role::Server, &asked, &said(name, value));
        assert_eq!(checked.is_ok(), honoured, "{name}: {checked:?}");
    }
}

#[test]
fn a_window_that_disagrees_with_the_time_that_passed_is_refused() {
    let passed = Duration::from_secs(10);
    let quiet = Delays::Measured(Duration::from_millis(20));
    assert!(window(9_990_000_000, passed, quiet).is_ok());
    assert!(window(10_000_500_000, passed, quiet).is_ok());
    assert!(window(10_002_000_000, passed, quiet).is_err());
    assert!(window(9_970_000_000, passed, quiet).is_err());
    // Unknown delays need a wide margin.
    let one = Delays::Unknown { clients: 1 };
    assert!(window(8_100_000_000, passed, one).is_ok());
    assert!(window(7_000_000_000, passed, one).is_err());
    // It is wider for a crowd.
    assert!(window(7_100_000_000, passed, Delays::Unknown { clients: 100 }).is_ok());
    assert!(window(6_900_000_000, passed, Delays::Unknown { clients: 100 }).is_err());
}

#[test]
fn a_window_of_200_ms_reported_5_percent_short_is_refused_and_the_reason_has_the_numbers() {
    let Err(Outcome::Failed { blame: Blame::Client, reason }) =
        window(190_000_000, Duration::from_millis(200), Delays::Measured(Duration::from_millis(1)))
    else {
        panic!("it is accepted")
    };
    let text = reason.to_string();
    assert!(text.contains("190.0ms") && text.contains("200.0ms") && text.contains("6.0ms"), "{text}");
}

#[test]
fn servers_must_have_answered_what_clients_recorded() {
    let tally = |ok, failed| {
        let errors = [(ErrorKind::Timeout, failed)].into_iter().filter(|(_, count)| *count > 0).collect();
        Tally { ok, errors, ..Tally::default() }
    };
    let mut job = cell().job;
    job.load.warm_up = Some(Extent::Requests(5));
    // A hundred requests, the check request, and five for warm-up.
    assert!(served(&job, 106, &tally(100, 0)).is_ok());
    for (answered, ok, failed) in [(111, 100, 0), (105, 100, 0), (99, 100, 0), (99, 100, 20), (127, 100, 20)] {
        let refused = served(&job, answered, &tally(ok, failed));
        assert!(matches!(refused, Err(Outcome::Failed { blame: Blame::Client, .. })), "{answered}: {refused:?}");
    }
    // A failed request may or may not have been answered.
    assert!(served(&job, 100, &tally(100, 20)).is_ok());
    assert!(served(&job, 126, &tally(100, 20)).is_ok());
    job.load.resumption = Resumption::Resume;
    assert!(served(&job, 110, &tally(100, 0)).is_ok(), "it may need more session tickets");
    job.load.resumption = Resumption::None;
    job.load.warm_up = Some(Extent::DurationNs(1));
    assert!(served(&job, 900, &tally(100, 0)).is_ok(), "the length of the warm-up is unknown");
    job.load.clients = 3;
    job.load.warm_up = None;
    assert!(served(&job, 103, &tally(100, 0)).is_ok());
}

#[test]
fn histograms_that_contradict_themselves_are_refused() {
    let of = |count, max_ns| Histogram { count, max_ns, min_ns: 1, ..Histogram::default() };
    let right = Histograms {
        response: of(3, 500),
        service: of(3, 500),
        lag: of(3, 5),
        handshake: of(3, 100),
        first_byte: of(3, 400),
        failure: of(0, 0),
        requests: 3,
        errors: IndexMap::new(),
        bytes_in: 3 * 1024,
        bytes_out: 0,
        connections: 3,
        handshakes: [(Handshake::Full, 3)].into_iter().collect(),
    };
    let check = |histograms: Histograms| results(&cell(), WINDOW, &Results::Histograms(Box::new(histograms)));
    assert_eq!(check(right.clone()).unwrap().ok, 3);
    for wrong in [
        Histograms { requests: 4, ..right.clone() },
        Histograms { bytes_in: 1, ..right.clone() },
        Histograms { lag: of(2, 5), ..right.clone() },
        Histograms { response: of(3, 2 * WINDOW), ..right.clone() },
        Histograms { connections: 1, ..right.clone() },
        Histograms { errors: [(ErrorKind::Reset, 1)].into_iter().collect(), ..right.clone() },
        Histograms { handshakes: [(Handshake::Resumed, 3)].into_iter().collect(), ..right.clone() },
    ] {
        assert!(check(wrong.clone()).is_err(), "{wrong:?}");
    }
}

#[test]
fn sidecar_counts_must_match_requests_and_responses() {
    let tally = |ok, failed| {
        let errors = [(ErrorKind::Reset, failed)].into_iter().filter(|(_, count)| *count > 0).collect();
        Tally { ok, errors, ..Tally::default() }
    };
    let said = |of_clients, of_servers: &[u64]| Carried {
        of_clients,
        of_servers: of_servers.iter().map(|count| Some(*count)).collect(),
    };
    let mut job = cell().job;
    job.load.warm_up = Some(Extent::Requests(2));
    // A hundred requests, the check request, and two for warm-up.
    assert!(carried(&job, &said(103, &[52, 51]), None, &tally(100, 0)).is_ok());
    for (carried_requests, ok, failures, words) in [
        (said(99, &[50, 49]), 100, 0, "99 carried requests, but the clients got responses to 100"),
        (said(99, &[50, 49]), 100, 1, "99 carried requests, but the clients got responses to 100"),
        (said(103, &[52, 50]), 100, 0, "103 carried requests, but those of the servers 102"),
        (said(102, &[52, 50]), 100, 0, "102 carried requests, but the clients sent 100 and 3 before they"),
        (said(105, &[52, 53]), 100, 0, "105 carried requests, but the clients sent 100"),
    ] {
        let Err(Outcome::Failed { blame, reason }) = carried(&job, &carried_requests, None, &tally(ok, failures))
        else {
            panic!("{words}")
        };
        assert!(blame == Blame::Sidecar && reason.to_string().contains(words), "{reason}");
    }
    // A failed request may have ended at any hop, and the count of a stopped sidecar is missing.
    assert!(carried(&job, &said(103, &[52, 50]), None, &tally(99, 1)).is_ok());
    let gone = Carried { of_servers: vec![Some(52), None], ..said(103, &[]) };
    assert!(carried(&job, &gone, None, &tally(100, 0)).is_ok());
    // Two clients, and servers that count.
    let answered = |requests: &[u64]| {
        let one = wirelab_model::timeline::Answered { at_ns: 9, requests: requests.to_vec() };
        let clients = vec![Default::default(); 2];
        TimelineRecord { answered: vec![one], clients, ..TimelineRecord::default() }
    };
    assert!(carried(&job, &said(106, &[53, 53]), Some(&answered(&[53, 53])), &tally(100, 0)).is_ok());
    let past = carried(&job, &said(106, &[53, 53]), Some(&answered(&[53, 54])), &tally(100, 0)).unwrap_err();
    assert!(
        matches!(past, Outcome::Failed { reason, .. } if reason.to_string().contains("report [53, 54] answered requests"))
    );
}

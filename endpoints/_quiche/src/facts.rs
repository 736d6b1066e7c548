//! quiche's and BoringSSL's facts about a connection.

use std::time::Duration;

use boring::ssl::SslRef;
use quiche::{BufFactory, Connection};
use serde_json::json;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_endpoint::program::{Configured, Failure, Reading};

/// Notes the negotiated values of a client's connection to `server`, and checks that the application protocol is
/// `alpn`.
///
/// # Errors
///
/// [`ErrorKind::Protocol`] if it is another one.
pub fn record<F: BufFactory>(
    connection: &mut Connection<F>,
    server: &str,
    alpn: &str,
    configured: &mut Configured,
) -> Result<(), Failure> {
    let got = connection.application_proto();
    if got != alpn.as_bytes() {
        let got = String::from_utf8_lossy(got);
        let message = format!("{server} negotiated the protocol `{got}`, not {alpn}");
        return Err(Failure::new(ErrorKind::Protocol, message));
    }
    let mut say = |name: &str, value: serde_json::Value| configured.insert(name.to_owned(), value);
    say("alpn", json!(alpn));
    if let Some(chain) = connection.peer_cert_chain() {
        say("certificate_chain_bytes", json!(chain.iter().map(|der| der.len()).sum::<usize>()));
    }
    if let Some(path) = connection.path_stats().next() {
        say("udp_payload", json!(path.pmtu));
    }
    let tls: &mut SslRef = connection.as_mut();
    if let Some(cipher) = tls.current_cipher().and_then(|cipher| cipher.standard_name()) {
        say("cipher", json!(cipher));
    }
    if let Some(group) = tls.curve_name() {
        say("group", json!(group));
    }
    Ok(())
}

/// The counters of a connection so far.
pub fn reading<F: BufFactory>(connection: &Connection<F>) -> Reading {
    let path = connection.path_stats().find(|path| path.active);
    let stats = connection.stats();
    // quiche has no smallest round trip before the first sample, and then an initial guess as the smoothed one.
    let sampled = path.as_ref().and_then(|path| path.min_rtt);
    let nanos = |time: Duration| Some(time.as_nanos() as u64).filter(|ns| *ns > 0);
    Reading {
        round_trip_min: sampled.and_then(nanos),
        round_trip: path.as_ref().filter(|_| sampled.is_some()).and_then(|path| nanos(path.rtt)),
        sent: Some(stats.sent as u64),
        lost: Some(stats.lost as u64),
        bytes_lost: Some(stats.lost_bytes),
        congestion_events: None,
        window: path.map(|path| path.cwnd as u64).filter(|window| *window > 0),
        payload: None,
    }
}

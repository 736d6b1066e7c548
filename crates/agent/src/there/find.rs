//! Waits until the client's pod finds exactly these servers: behind the address of a service, or by a name.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the cluster may take to route clients to a changed set of servers.
pub const ROUTING_TIMEOUT: Duration = Duration::from_secs(30);

/// Time-out of one connection.
const ANSWERING: Duration = Duration::from_millis(500);

/// Intervals of connections and of name lookups. Neither nodes nor name servers announce that they have applied a
/// change; only an answer shows it.
const ASK_EVERY: Duration = Duration::from_millis(5);
const RESOLVE_EVERY: Duration = Duration::from_millis(100);

/// Required answers in a row, per server. A server that no longer belongs to the set, yet still gets connections, is
/// missed with a probability of 2 %.
const TIMES: usize = 4;

/// Connects repeatedly until only pods of these names have answered many times in a row, each at least once.
pub(crate) fn behind(address: &str, names: &[&str]) -> io::Result<()> {
    let address: SocketAddr =
        address.parse().map_err(|_| io::Error::other(format!("`{address}` is no address with a port")))?;
    let enough = TIMES * (names.len() + 1);
    let deadline = Instant::now() + ROUTING_TIMEOUT;
    let (mut in_a_row, mut found) = (0, BTreeSet::new());
    loop {
        let said = who(address);
        match &said {
            Ok(name) if names.contains(&name.as_str()) => {
                in_a_row += 1;
                found.insert(name.clone());
            }
            Ok(_) | Err(_) => (in_a_row, found) = (0, BTreeSet::new()),
        }
        if in_a_row >= enough && found.len() == names.len() {
            return Ok(());
        }
        if Instant::now() > deadline {
            let said = said.map_or_else(|error| format!("fails: {error}"), |name| format!("leads to {name}"));
            let found: Vec<_> = found.into_iter().collect();
            return Err(io::Error::other(format!(
                "connections to {address} do not lead to exactly {}: the last one {said}; earlier ones led to [{}]",
                names.join(", "),
                found.join(", ")
            )));
        }
        sleep(ASK_EVERY);
    }
}

/// The name of the pod that answers a connection.
fn who(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWERING)?;
    stream.set_read_timeout(Some(ANSWERING))?;
    let mut name = String::new();
    stream.read_to_string(&mut name)?;
    Ok(name)
}

/// Looks a name up repeatedly until it resolves to exactly these addresses.
pub(crate) fn by_name(name: &str, addresses: &[&str]) -> io::Result<()> {
    let wanted: BTreeSet<IpAddr> = addresses.iter().filter_map(|address| address.parse().ok()).collect();
    let deadline = Instant::now() + ROUTING_TIMEOUT;
    loop {
        // The system's resolver, as clients use it.
        let found = (name, 0).to_socket_addrs().map(|found| found.map(|socket| socket.ip()).collect::<BTreeSet<_>>());
        if matches!(&found, Ok(found) if *found == wanted) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let found = found.map_or_else(|error| format!("fails: {error}"), |found| format!("gives {found:?}"));
            return Err(io::Error::other(format!("looking up {name} {found}, not {wanted:?}")));
        }
        sleep(RESOLVE_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn it_waits_until_only_these_pods_answer_and_each_of_them_did() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        // The third pod goes away, and the second comes late.
        let answers = [&["other-0", "near-0", "old"][..], &["other-0"; 30], &["near-0", "other-0"].repeat(10)].concat();
        let asked = std::thread::spawn(move || {
            for (number, answer) in answers.iter().enumerate() {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                if number == 33 {
                    return number;
                }
            }
            unreachable!("{answers:?}")
        });
        behind(&address, &["near-0", "other-0"]).unwrap();
        assert_eq!(asked.join().unwrap(), 33, "the first moment at which both had answered, many times in a row");
    }

    #[test]
    fn a_name_is_found_that_resolves_to_the_wanted_addresses() {
        by_name("127.0.0.1", &["127.0.0.1"]).unwrap();
    }
}

//! Measures the path between two hosts through an agent on each of them.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use wirelab_lab::LabError;
use wirelab_lab::path::{Meeting, Order};
use wirelab_model::missing::Missing;
use wirelab_model::path::{Measured, PathReading};
use wirelab_model::units::BitRate;

use crate::call::output;
use crate::remote::{Complaints, Piece, Remote, Stream};

/// The longest line of a reflector in bytes.
const MEETING: usize = 64 * 1024;

/// Time-outs of the start of a reflector, and of a measurement: a path that loses most packets makes it repeat much.
const STARTING: Duration = Duration::from_secs(20);
const MEASURING: Duration = Duration::from_secs(120);

/// Measures the path between the hosts of a client and of a server, whose address the client uses. `load` is the
/// largest load that the user allows.
#[must_use]
pub fn measure_path(
    client: &dyn Remote,
    server: &dyn Remote,
    address: IpAddr,
    load: Option<BitRate>,
) -> Measured<PathReading> {
    let measured = reflector(server, address).and_then(|(reflector, _stream)| {
        let order =
            serde_json::to_vec(&Order { server: address, reflector, load }).expect("an order always serialises");
        let text = output(client, &["measure-path"], order, Instant::now() + MEASURING)?;
        serde_json::from_slice(&text).map_err(|error| {
            LabError::process(format!("the agent in {} is not understood", client.name())).because(error)
        })
    });
    measured.unwrap_or_else(|error: LabError| Measured::Missing(Missing::Lab { reason: error.to_string() }))
}

/// Starts a reflector, which ends with the stream.
fn reflector(server: &dyn Remote, address: IpAddr) -> Result<(Meeting, Box<dyn Stream>), LabError> {
    let address = address.to_string();
    let mut stream = server.run(&["reflect", &address])?;
    let attempt = || LabError::process(format!("cannot measure the path to {}", server.name()));
    let mut complaints = Complaints::of(stream.stderr());
    let (mut said, deadline) = (Vec::new(), Instant::now() + STARTING);
    loop {
        if let Some(end) = said.iter().position(|byte| *byte == b'\n') {
            let meeting = serde_json::from_slice(&said[..end]).map_err(|error| attempt().because(error))?;
            return Ok((meeting, stream));
        }
        match stream.read(deadline) {
            Piece::Bytes(bytes) if said.len() < MEETING => said.extend(bytes),
            Piece::Bytes(_) => return Err(attempt().because(format!("its line has more than {MEETING} bytes"))),
            Piece::Deadline => return Err(attempt().because(format!("its agent said nothing within {STARTING:?}"))),
            Piece::Ended(ended) => {
                return Err(attempt().because(format!("its agent {}: {}", ended.phrase("ended"), complaints.words())));
            }
        }
    }
}

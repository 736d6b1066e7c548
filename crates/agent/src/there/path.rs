//! The two ends of a measurement of the path between hosts.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use wirelab_lab::path::{self, Order, Reflector};
use wirelab_model::path::Measured;

use super::say;

/// Answers the prober until standard input ends.
pub(crate) fn reflect(address: &str) -> io::Result<()> {
    let address = address.parse().map_err(|_| io::Error::other(format!("`{address}` is no address")))?;
    let reflector = Reflector::bind(address)?;
    say(&serde_json::to_string(&reflector.meeting()?)?)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Without a reader at the other end, this end has no purpose either.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            is_over.store(true, Ordering::Relaxed);
        });
        reflector.serve(&is_over)
    })
}

/// Measures the path of the order on standard input.
pub(crate) fn measure() -> io::Result<()> {
    let mut order = String::new();
    io::stdin().lock().read_to_string(&mut order)?;
    let order: Order = serde_json::from_str(&order)?;
    let reading = path::measure(&order).map_or_else(Measured::Missing, Measured::Is);
    say(&serde_json::to_string(&reading)?)
}

//! The congestion controls that the kernel permits to this user.

use rustix::net::{AddressFamily, SocketType, socket, sockopt};
use wirelab_model::spec::Congestion;

/// Whether a TCP socket of this process can have this congestion control. Without privileges the kernel permits only
/// those in `net.ipv4.tcp_allowed_congestion_control`.
#[must_use]
pub fn is_permitted(congestion: Congestion) -> bool {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None);
    socket.is_ok_and(|socket| sockopt::set_tcp_congestion(&socket, congestion.token()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_is_permitted_to_every_user() {
        assert!(is_permitted(Congestion::Reno));
    }
}

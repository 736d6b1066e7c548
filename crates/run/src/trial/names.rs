//! Names of the logs of servers and clients.

/// Log name of a server: the first one has no number.
pub(crate) fn server_name(number: u32) -> String {
    if number == 0 { "server".to_owned() } else { format!("server{number}") }
}

pub(crate) fn server_log(number: u32) -> String {
    format!("{}.log", server_name(number))
}

/// Log name of a client, likewise.
pub(crate) fn client_name(number: u32) -> String {
    if number == 0 { "client".to_owned() } else { format!("client{number}") }
}

pub(crate) fn client_log(number: u32) -> String {
    format!("{}.log", client_name(number))
}

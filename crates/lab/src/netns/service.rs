//! A service address that stands for several servers. For each new connection the client's node translates it to the
//! address of a random server, as kube-proxy does with nftables.
//!
//! The program `nft` writes the rules, as for kube-proxy: it defines the language, and users can inspect the rules
//! with it.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::LabError;
use crate::netns::namespace::Namespace;

/// Address of the service.
pub(crate) const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 1);

const TABLE: &str = "wirelab";

/// Makes the service at this port stand for exactly these servers, given by number, on the node of the clients' pod.
/// A change takes effect atomically, for new connections; counters continue.
pub(crate) fn publish(node: &Namespace, port: u16, servers: &[(u32, SocketAddrV4)]) -> Result<(), LabError> {
    nft(node, &["-f", "-"], &rules(port, servers)).map(drop)
}

/// Removes the service, if it exists.
pub(crate) fn withdraw(node: &Namespace) -> Result<(), LabError> {
    // nft fails to delete a missing table, but accepts to add an existing one.
    nft(node, &["-f", "-"], &format!("add table ip {TABLE}\ndelete table ip {TABLE}\n")).map(drop)
}

/// Number of connections per server.
pub(crate) fn chosen(node: &Namespace, servers: u32) -> Result<Vec<u64>, LabError> {
    let text = nft(node, &["-j", "list", "counters", "table", "ip", TABLE], "")?;
    let unreadable = || LabError::network(format!("cannot parse the counters of `nft`: {text}"));
    let all: Value = serde_json::from_str(&text).map_err(|_| unreadable())?;
    let counter = |number: u32| {
        let is_it = |one: &&Value| one["counter"]["name"] == counter_name(number);
        all["nftables"].as_array()?.iter().find(is_it)?["counter"]["packets"].as_u64()
    };
    (0..servers).map(|number| counter(number).ok_or_else(unreadable)).collect()
}

/// The rules. Only the first packet of a connection passes a chain for address translation; the kernel tracks the
/// rest. `nft` applies them as one transaction, in which adding existing objects changes nothing.
fn rules(port: u16, servers: &[(u32, SocketAddrV4)]) -> String {
    let mut text = format!("add table ip {TABLE}\n");
    let mut choices = Vec::new();
    for (choice, (number, server)) in servers.iter().enumerate() {
        let (counter, address, own) = (counter_name(*number), server.ip(), server.port());
        let _ = write!(
            text,
            "add counter ip {TABLE} {counter}\nadd chain ip {TABLE} {counter}\nflush chain ip {TABLE} {counter}\n\
             add rule ip {TABLE} {counter} counter name {counter} meta l4proto {{ tcp, udp }} dnat to {address}:{own}\n"
        );
        choices.push(format!("{choice} : goto {counter}"));
    }
    let (count, choices) = (servers.len(), choices.join(", "));
    let _ = write!(
        text,
        "add chain ip {TABLE} services {{ type nat hook prerouting priority dstnat ; }}\nflush chain ip {TABLE} services\n\
         add rule ip {TABLE} services ip daddr {ADDRESS} meta l4proto {{ tcp, udp }} th dport {port} \
         numgen random mod {count} vmap {{ {choices} }}\n"
    );
    text
}

fn counter_name(server: u32) -> String {
    format!("server{server}")
}

/// Runs `nft` in a node; returns its output.
fn nft(node: &Namespace, arguments: &[&str], input: &str) -> Result<String, LabError> {
    let output = node.within(|| {
        let mut child =
            program().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        child.stdin.take().expect("standard input is piped").write_all(input.as_bytes())?;
        child.wait_with_output()
    });
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => LabError::network("running `nft`").because(error).remedy(REMEDY),
        _ => LabError::network("running `nft`").because(error),
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let words = String::from_utf8_lossy(&output.stderr);
        Err(LabError::network(format!("making a service with `nft {}`", arguments.join(" "))).because(words.trim()))
    }
}

/// The program `nft`, in a folder that is not on every user's PATH.
fn program() -> Command {
    let mut program = Command::new("nft");
    let path = std::env::var("PATH").unwrap_or_default();
    program.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    program
}

/// Remedy if `nft` is missing.
const REMEDY: &str = "install it (package nftables), and have it on the PATH";

/// Checks whether services can be created, without creating one.
///
/// # Errors
/// If they cannot; the message names the remedy.
pub fn available() -> Result<(), LabError> {
    match program().arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(LabError::network(format!("`nft --version` ended with {}", output.status)).remedy(REMEDY)),
        Err(error) => Err(LabError::network("running `nft`").because(error).remedy(REMEDY)),
    }
}

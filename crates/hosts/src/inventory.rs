//! The hosts of a run: from `--hosts` or a file.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use wirelab_model::nearest::did_you_mean;
use wirelab_model::placement::Spot;

/// Hosts, in the order in which they are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    pub host: Vec<Host>,
}

/// A machine that `ssh` reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name in reports and messages; absent: the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Destination as `ssh` takes it: a name of its configuration, `user@name`, or `ssh://user@name:port`.
    pub ssh: String,
    /// The roles that run there.
    pub roles: Vec<HostRole>,
    /// Address to measure over; absent: the address of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Its zone, for the placements `same-zone` and `other-zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Its region, for the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostRole {
    /// Clients run there.
    Client,
    /// Servers run there.
    Server,
}

/// Why the hosts of a run are not known.
#[derive(Debug, Error)]
pub enum InventoryError {
    /// `--hosts` is missing.
    #[error(
        "the lab `hosts` needs the machines to use; name them, for example \
         `--hosts client=alice@a.example,server=b.example`, or `--hosts hosts.toml`"
    )]
    Missing,
    /// A part of `--hosts` is not of the form ROLE=DESTINATION.
    #[error("--hosts: `{0}` is not of the form ROLE=DESTINATION with the role `client` or `server`{1}")]
    Form(String, String),
    /// The file cannot be read.
    #[error("cannot read the hosts file {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// The file has a mistake.
    #[error("the hosts file {}: {cause}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The place and kind of the mistake.
        cause: Box<toml::de::Error>,
    },
    /// A destination that `ssh` would take for an option.
    #[error("the destination `{0}` is empty or begins with a hyphen")]
    Destination(String),
    /// No host has this role.
    #[error("no host has the role `{0}`; a run needs at least one client and one server")]
    NoRole(&'static str),
    /// Two hosts have one name.
    #[error("two hosts have the name `{0}`; give each another `name`")]
    Twice(String),
}

impl Inventory {
    /// Reads the value of `--hosts`: a list of ROLE=DESTINATION, or the path of a file.
    ///
    /// # Errors
    /// See [`InventoryError`].
    pub fn read(text: &str) -> Result<Self, InventoryError> {
        if !text.contains('=') {
            return Self::file(Path::new(text));
        }
        let mut inventory = Self { host: Vec::new() };
        for part in text.split(',').map(str::trim) {
            let (role, destination) =
                part.split_once('=').ok_or_else(|| InventoryError::Form(part.to_owned(), String::new()))?;
            let role = match role {
                "client" => HostRole::Client,
                "server" => HostRole::Server,
                other => {
                    let meant = did_you_mean(other, ["client", "server"]);
                    return Err(InventoryError::Form(part.to_owned(), meant));
                }
            };
            match inventory.host.iter_mut().find(|host| host.ssh == destination) {
                Some(host) => host.roles.push(role),
                None => inventory.host.push(Host::at(destination, role)),
            }
        }
        inventory.checked()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// See [`InventoryError`].
    pub fn file(path: &Path) -> Result<Self, InventoryError> {
        let text =
            fs::read_to_string(path).map_err(|cause| InventoryError::Unreadable { path: path.to_owned(), cause })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file. `path` is for messages.
    ///
    /// # Errors
    /// See [`InventoryError`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, InventoryError> {
        let inventory: Self = toml::from_str(text)
            .map_err(|cause| InventoryError::Syntax { path: path.to_owned(), cause: Box::new(cause) })?;
        inventory.checked()
    }

    fn checked(self) -> Result<Self, InventoryError> {
        let mut names = HashSet::new();
        for host in &self.host {
            if host.ssh.is_empty() || host.ssh.starts_with('-') {
                return Err(InventoryError::Destination(host.ssh.clone()));
            }
            if !names.insert(host.name()) {
                return Err(InventoryError::Twice(host.name().to_owned()));
            }
        }
        for (role, word) in [(HostRole::Client, "client"), (HostRole::Server, "server")] {
            if self.with(role).next().is_none() {
                return Err(InventoryError::NoRole(word));
            }
        }
        Ok(self)
    }

    /// The content of a file with these hosts.
    pub(crate) fn to_toml(&self) -> String {
        toml::to_string(self).expect("hosts always serialise")
    }

    /// The hosts with a role, in order.
    pub(crate) fn with(&self, role: HostRole) -> impl Iterator<Item = &Host> {
        self.host.iter().filter(move |host| host.roles.contains(&role))
    }
}

impl Host {
    fn at(destination: &str, role: HostRole) -> Self {
        let ssh = destination.to_owned();
        Self { name: None, ssh, roles: vec![role], address: None, zone: None, region: None }
    }

    /// Name in reports and messages.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.ssh)
    }

    /// Its position, for placements.
    pub(crate) fn spot(&self) -> Spot {
        Spot { node: Some(self.name().to_owned()), zone: self.zone.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_from_a_list_and_from_a_file() {
        let list = Inventory::read("client=alice@a.example, server=b.example,server=c.example").unwrap();
        let names = |role| list.with(role).map(Host::name).collect::<Vec<_>>();
        assert_eq!((names(HostRole::Client), names(HostRole::Server).len()), (vec!["alice@a.example"], 2));
        let both = Inventory::read("client=a,server=a").unwrap();
        assert_eq!(both.host[0].roles, [HostRole::Client, HostRole::Server]);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.toml");
        let text = "[[host]]\nname = \"a\"\nssh = \"alice@a.example\"\nroles = [\"client\"]\nzone = \"z1\"\n\
                    [[host]]\nssh = \"b.example\"\nroles = [\"server\"]\naddress = \"192.0.2.7\"\n";
        fs::write(&path, text).unwrap();
        let file = Inventory::read(path.to_str().unwrap()).unwrap();
        assert_eq!((file.host[0].name(), file.host[1].address), ("a", Some("192.0.2.7".parse().unwrap())));
        fs::write(&path, file.to_toml()).unwrap();
        assert_eq!(Inventory::file(&path).unwrap(), file);
    }

    #[test]
    fn mistakes_are_located_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.toml");
        fs::write(&path, "[[host]]\nssh = \"a\"\nrole = [\"client\"]\n").unwrap();
        for (text, expected) in [
            ("client=a", "no host has the role `server`"),
            ("clint=a,server=b", "did you mean `client`"),
            ("client=-oProxyCommand=x,server=b", "begins with a hyphen"),
            ("/nowhere/hosts.toml", "cannot read the hosts file /nowhere/hosts.toml"),
            (path.to_str().unwrap(), "line 3"),
        ] {
            let why = Inventory::read(text).unwrap_err().to_string();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}

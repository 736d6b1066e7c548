//! Facts about a host that only a process inside it can read.

use std::fs;

use serde::{Deserialize, Serialize};

/// Facts about a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of its wirelab.
    pub wirelab: String,
    /// The MTU of its interface; `None` if it has none, or several interfaces.
    pub mtu: Option<u32>,
}

impl Facts {
    pub(crate) fn read() -> Self {
        let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        let mut mtus = interfaces.filter(|interface| interface.file_name() != "lo").filter_map(|interface| {
            let text = fs::read_to_string(interface.path().join("mtu")).ok()?;
            text.trim().parse().ok()
        });
        let mtu = mtus.next().filter(|_| mtus.next().is_none());
        Self { wirelab: env!("CARGO_PKG_VERSION").to_owned(), mtu }
    }
}

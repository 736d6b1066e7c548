//! Facts about a pod that only a process inside it can read.

use std::fs;

use serde::{Deserialize, Serialize};

/// Facts that no object of the cluster has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The version of wirelab in the image.
    pub(crate) wirelab: String,
    /// The MTU of the pod's interface; `None` if it has none, or several interfaces.
    pub(crate) mtu: Option<u32>,
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

//! A program of the user as the client of a trial.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::totals::Printed;

/// Where the output of a program has values: a regular expression with one group for each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ClientOutput(pub BTreeMap<Printed, String>);

impl ClientOutput {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the program prints this value.
    #[must_use]
    pub fn has(&self, value: Printed) -> bool {
        self.0.contains_key(&value)
    }
}

/// A program of the user as the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnClient {
    /// The words of its command line.
    pub words: Vec<String>,
    /// Where its output has values.
    pub output: ClientOutput,
}

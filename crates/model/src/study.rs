//! A study as it is written: a question as a file.

use std::fmt;
use std::net::SocketAddr;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::claim::Claim;
use crate::selector::Selector;
use crate::settings::Settings;
use crate::timeline::Timeline;
use crate::units::{Share, Span};

/// A study file (`study.toml`). `wirelab studies` lists the built-in ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: String,
    /// One line for lists and headings.
    pub title: String,
    /// The question that the study answers.
    pub question: String,
    /// What the author expects, written down beforehand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<String>,
    /// What the study cannot tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Where it comes from, if it follows a publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Seeds the order of trials and every random choice in them. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// Where it runs: `loopback`, `netns`, `kubernetes`, `internet` or `fake`. `--lab` overrides it. Default: `loopback`.
    #[serde(default = "loopback")]
    pub lab: String,
    /// What is observed beside the client's own records, by observer name. Default: every observer that needs no
    /// privileges (`wirelab labs` lists them).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observers: Option<Vec<String>>,
    /// What becomes of a level whose endpoint is not installed: `refuse` (the run is refused) or `skip` (the level is left
    /// out, with a warning in the report). Default: `refuse`.
    #[serde(default, skip_serializing_if = "MissingEndpoints::is_default")]
    pub missing_endpoints: MissingEndpoints,
    /// What else is kept of each trial, for looking into it: `pcap`, `qlog`, `keys`, `netlog`, `har`. All but `har` is written
    /// while requests are measured, and makes trials slower. `--keep` adds to it.
    /// Default: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Artifact>,
    /// Where Prometheus finds the run while it goes on, for example `127.0.0.1:9464` (docs/metrics.md). It brings the observer
    /// `prometheus` to every cell, unless `more_observers` names it. `--metrics` overrides it. Default: nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// What is fixed.
    #[serde(default)]
    pub workload: Settings,
    /// What is varied: a setting with its values, or a word with named levels that each set several settings.
    /// Every combination of levels is a cell.
    #[serde(default)]
    pub factors: IndexMap<String, Factor>,
    /// Combinations to leave out: a cell that has all the levels of one entry is not in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Selector>,
    /// Where levels of several factors together need other settings than each of them says: a stack of which each protocol has
    /// an endpoint of its own, a server without 0-RTT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjust: Vec<Adjustment>,
    /// What is done while the measured window of each trial goes on: servers and clients come and go. Default: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// What is compared with what.
    pub compare: Compare,
    /// How often it is repeated, and when it is enough.
    #[serde(default)]
    pub blocks: Blocks,
    /// Statements to test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Box plots of the response times of single requests, and total times, arranged as the author wants to see them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Published numbers to show beside the measured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Variants of the study by name, chosen with `--preset`. What a preset leaves out stays as it is above.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub presets: IndexMap<String, Preset>,
}

const fn one() -> u64 {
    1
}

fn loopback() -> String {
    "loopback".to_owned()
}

/// What becomes of a level whose endpoint is not installed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissingEndpoints {
    /// The run is refused.
    #[default]
    Refuse,
    /// The level is left out, with a warning in the report: the study takes whatever is installed.
    Skip,
}

impl MissingEndpoints {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Something that a trial leaves behind besides its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Artifact {
    /// Every packet at the client's interface and at that of the server's node, as pcapng files with the secrets of TLS in them.
    /// It brings the observer `packets`, and needs a client that writes a key log.
    Pcap,
    /// What QUIC libraries log of themselves, where they write qlog.
    Qlog,
    /// The secrets of TLS and QUIC alone, as a key log (the format of `SSLKEYLOGFILE`), to decrypt what was captured elsewhere.
    Keys,
    /// What the network stack of Chromium does, as it logs it itself (netlog, JSON). Other browsers write none.
    Netlog,
    /// Every load of a page, where browsers are the clients, as an HTTP Archive (HAR 1.2). Written behind the measured window.
    Har,
}

impl Artifact {
    /// Whether something is written while requests are measured.
    #[must_use]
    pub const fn disturbs(self) -> bool {
        !matches!(self, Self::Har)
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pcap => "pcap",
            Self::Qlog => "qlog",
            Self::Keys => "keys",
            Self::Netlog => "netlog",
            Self::Har => "har",
        })
    }
}

/// The levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Factor {
    /// Values of the setting that has the factor's name.
    Values(Vec<serde_json::Value>),
    /// Named levels, each of which sets any number of settings.
    Levels(IndexMap<String, Settings>),
}

// By hand, because an untagged enum would lose the place of an error inside a level.
impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Factor;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of values, or a table of named levels")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Factor, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Factor::Values)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Factor, A::Error> {
                Deserialize::deserialize(de::value::MapAccessDeserializer::new(map)).map(Factor::Levels)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Box plots of response times of requests, beside each other by the levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What is seen, in one line.
    pub title: String,
    /// Which cells.
    #[serde(default)]
    pub cells: Selector,
    /// The factor whose levels stand below each other, a box each; each combination of the others has a plot of its own.
    pub rows: String,
    /// Factors whose levels are thrown together: a box has the requests of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<String>,
}

/// Settings of the cells that have these levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adjustment {
    /// Which cells.
    pub cells: Selector,
    /// What is set in them, after everything else. Later adjustments come after earlier ones.
    pub set: Settings,
}

/// What is compared with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The factor whose levels are compared, at equal levels of all others.
    pub factor: String,
    /// The level that the others are compared with. Its cells are in the plan twice: the A/A pair, whose spread is the
    /// noise floor.
    pub baseline: String,
    /// The metrics to compare; the first one decides when the study stops. Default: `response_median`.
    #[serde(default = "response_median")]
    pub metrics: Vec<String>,
    /// Differences below this are called equivalent. Default: `5 %`.
    #[serde(default = "five_percent")]
    pub margin: Share,
}

fn response_median() -> Vec<String> {
    vec!["response_median".to_owned()]
}

const fn five_percent() -> Share {
    Share(0.05)
}

/// How often a study is repeated, block by block, and when it is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Blocks {
    /// Blocks before any verdict. Default: 10. The plan raises it where Holm's correction over the study's comparisons
    /// makes fewer blocks unable to reach significance, however large the effect (the report then says so).
    pub min: u32,
    /// Blocks after which the study ends in any case. Default: 30.
    pub max: u32,
    /// Time after which no new block starts, once `min` blocks are there. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// The study ends when every interval of the first metric is narrower than this on both sides. Default: `5 %`.
    pub precision: Share,
    /// A cell is given up when this many of its trials in a row were refused, or failed by the fault of server or client, in the same
    /// way: its further trials are not run, and end with that reason. Default: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub give_up_after: Option<u32>,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { min: 10, max: 30, budget: None, precision: Share(0.05), give_up_after: None }
    }
}

/// A variant of a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Preset {
    /// One line: what it is for, how long it takes.
    pub about: String,
    /// Replaces `lab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<String>,
    /// Replaces `limits`, which depend on the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Settings that replace those of `[workload]`.
    pub workload: Settings,
    /// Factors that replace those of the same name.
    pub factors: IndexMap<String, Factor>,
    /// Replaces `exclude`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Vec<Selector>>,
    /// Replaces `blocks.min`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_blocks: Option<u32>,
    /// Replaces `blocks.max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_blocks: Option<u32>,
    /// Replaces `blocks.budget`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
}

/// A published number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The cells that it belongs to.
    pub cell: Selector,
    /// The metric that it is to be compared with.
    pub metric: String,
    /// The number, in the metric's base unit (ns, bytes, bit/s, per second, share of 1).
    pub value: f64,
    /// The publication and its own words for what was measured, where they differ.
    pub note: String,
}

//! A study file: a question, the settings that answer it, and the rules of the comparison.

use std::fmt;
use std::net::SocketAddr;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::claim::Claim;
use crate::request::WrittenRequest;
use crate::requirement::Requirement;
use crate::selector::Selector;
use crate::settings::Settings;
use crate::timeline::Timeline;
use crate::units::{BitRate, Share, Span};

/// A study file (`study.toml`). `wirelab studies` lists the built-in ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Name: lower-case letters, digits and hyphens.
    pub name: String,
    /// Title for lists and headings, one line.
    pub title: String,
    /// The question that the study answers.
    pub question: String,
    /// The author's expectation, written before the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prediction: Option<String>,
    /// Limits of the study's conclusions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The publication that the study follows, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Seed of the order of trials and of every random choice in them. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// The lab: `loopback`, `netns`, `hosts`, `kubernetes`, `internet` or `fake`. `--lab` overrides it. Default:
    /// `loopback`.
    #[serde(default = "loopback")]
    pub lab: String,
    /// Names of the observers, in addition to the client's own records. Default: every observer that needs no
    /// privileges (`wirelab labs` lists them).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observers: Option<Vec<String>>,
    /// Treatment of a level whose endpoint is not installed: `refuse` refuses the run; `skip` omits the level, with a
    /// warning in the report. Default: `refuse`.
    #[serde(default, skip_serializing_if = "MissingEndpoints::is_default")]
    pub missing_endpoints: MissingEndpoints,
    /// Further files to keep of each trial, for diagnosis: `pcap`, `qlog`, `keys`, `netlog`, `har`. All except `har`
    /// are written during the measured window and slow trials down. `--keep` adds to the list. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<Artifact>,
    /// Largest load with which the run may measure the rate and the loaded round trip of paths between hosts that
    /// wirelab does not emulate, for example `100 Mbit/s`. Each measurement sends it for 0.6 s in each direction:
    /// before the first block, between blocks and after the last. Default: no load, so that both are not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_load: Option<BitRate>,
    /// Address at which Prometheus can query the run, for example `127.0.0.1:9464` (docs/metrics.md). It adds the
    /// observer `prometheus` to every cell, unless `more_observers` names it. `--metrics` overrides it. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<SocketAddr>,
    /// The requests of all cells, in place of the requests that `exchange` and `payload` describe: a table
    /// `[request]`, or several tables `[[request]]`. For HTTP, and clients that support it, such as the built-in one.
    /// With gRPC, they are calls of the load engine. Default: none.
    #[serde(default, rename = "request", deserialize_with = "one_or_several", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "OneOrSeveral")]
    pub requests: Vec<WrittenRequest>,
    /// Settings that are the same in all cells.
    #[serde(default)]
    pub workload: Settings,
    /// Placements of the study's own, each by its name with the keys of its link (from `round_trip` to `mtu`); what is
    /// not set is as on a wire. `wirelab labs measure --as-placement` writes them. Default: none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub placements: IndexMap<String, Settings>,
    /// Settings that vary: a setting with its values, or a name with named levels that each set several settings. Every
    /// combination of levels is a cell.
    #[serde(default)]
    pub factors: IndexMap<String, Factor>,
    /// Combinations to omit: a cell that has all the levels of one entry is not in the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Selector>,
    /// Settings for combinations of levels of several factors, for example a stack with one endpoint per protocol, or a
    /// server without 0-RTT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjust: Vec<Adjustment>,
    /// Actions during the measured window of each trial, which start and stop servers and clients. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Largest share of the time of all trials for planted effects: differences of known size, which show whether the
    /// run finds what is there. `0 %` switches them off (`--set planted='0 %'`). Default: `10 %`.
    #[serde(default = "ten_percent", skip_serializing_if = "is_ten_percent")]
    pub planted: Share,
    /// Largest share of the time of all trials for null references: the same client against a server that answers at
    /// once, which shows the client's share of the response time. `0 %` switches them off. Default: `10 %`.
    #[serde(default = "ten_percent", skip_serializing_if = "is_ten_percent")]
    pub references: Share,
    /// The comparison: factor, baseline, metrics and margin.
    pub compare: Compare,
    /// Number of blocks, and the rule that ends the study.
    #[serde(default)]
    pub blocks: Blocks,
    /// Requirements: a run that does not meet one ends with exit status 3. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Requirement>,
    /// Claims to test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Figures of the report: box plots of the response times of single requests, and total times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<Figure>,
    /// Published numbers to show next to the measured numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Variants of the study by name, selected with `--preset`. A preset replaces only the keys that it sets.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub presets: IndexMap<String, Preset>,
}

/// The schema of `request`.
#[derive(JsonSchema)]
#[schemars(inline)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
enum OneOrSeveral {
    One(Box<WrittenRequest>),
    Several(Vec<WrittenRequest>),
}

// Written by hand, because an untagged enum loses the location of an error.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<WrittenRequest>, D::Error> {
    struct Visitor;
    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Vec<WrittenRequest>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table `[request]`, or tables `[[request]]`")
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
            Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq))
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Deserialize::deserialize(de::value::MapAccessDeserializer::new(map)).map(|one| vec![one])
        }
    }
    deserializer.deserialize_any(Visitor)
}

const fn one() -> u64 {
    1
}

const fn ten_percent() -> Share {
    Share(0.1)
}

fn is_ten_percent(share: &Share) -> bool {
    *share == ten_percent()
}

fn loopback() -> String {
    "loopback".to_owned()
}

/// Treatment of a level whose endpoint is not installed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MissingEndpoints {
    /// Refuses the run.
    #[default]
    Refuse,
    /// Omits the level, with a warning in the report: the study uses the installed endpoints.
    Skip,
}

impl MissingEndpoints {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A file that a trial can keep in addition to its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Artifact {
    /// Every packet at the client's interface and at the interface of the server's node, as pcapng files that include
    /// the TLS secrets. It adds the observer `packets`, and needs a client that writes a key log.
    Pcap,
    /// Logs of QUIC libraries in the qlog format, if the library supports it.
    Qlog,
    /// Only the TLS and QUIC secrets, as a key log (the format of `SSLKEYLOGFILE`), to decrypt packets that were
    /// captured elsewhere.
    Keys,
    /// The log of Chromium's network stack (netlog, JSON). Other browsers write none.
    Netlog,
    /// Every load of a page by a browser, as an HTTP Archive (HAR 1.2), written after the measured window.
    Har,
}

impl Artifact {
    /// Whether the file is written during the measured window.
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
    /// Values of the setting with the factor's name.
    Values(Vec<serde_json::Value>),
    /// Named levels; each sets any number of settings.
    Levels(IndexMap<String, Settings>),
}

// Written by hand, because an untagged enum loses the location of an error inside a level.
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

/// Box plots of the response times of requests, grouped by the levels of a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Title of the figure, one line.
    pub title: String,
    /// The cells to which it applies.
    #[serde(default)]
    pub cells: Selector,
    /// The factor with one box per level, listed vertically; each combination of the other factors has a plot of its
    /// own.
    pub rows: String,
    /// Factors whose levels are pooled: a box contains the requests of all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pool: Vec<String>,
}

/// Settings for the cells with certain levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adjustment {
    /// The cells to which it applies.
    pub cells: Selector,
    /// The settings, applied after all others. Later adjustments override earlier ones.
    pub set: Settings,
}

/// The comparison: factor, baseline, metrics and margin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// The factor whose levels are compared, at equal levels of all other factors.
    pub factor: String,
    /// The level with which the others are compared. The plan has its cells twice: the A/A pair, whose spread is the
    /// noise floor.
    pub baseline: String,
    /// The metrics to compare; the first one decides when the study ends. Default: `response_median`.
    #[serde(default = "response_median")]
    pub metrics: Vec<String>,
    /// The metrics among `metrics` that answer the study's question. The probability of any false verdict in them is
    /// at most 5 %; verdicts in the others are exploratory. Default: the first of `metrics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub primary: Vec<String>,
    /// Differences below this margin are called equivalent. Default: `5 %`.
    #[serde(default = "five_percent")]
    pub margin: Share,
}

impl Compare {
    /// Whether a metric is one of the primary ones.
    #[must_use]
    pub fn is_primary(&self, metric: &str) -> bool {
        match self.primary.as_slice() {
            [] => self.metrics.first().is_some_and(|first| first == metric),
            primary => primary.iter().any(|name| name == metric),
        }
    }
}

fn response_median() -> Vec<String> {
    vec!["response_median".to_owned()]
}

const fn five_percent() -> Share {
    Share(0.05)
}

/// Number of blocks of a study, and the rule that ends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Blocks {
    /// Minimum number of blocks before a verdict. Default: 10. The plan raises it if Holm's correction over the study's
    /// comparisons makes fewer blocks unable to reach significance, however large the effect; the report then says so.
    pub min: u32,
    /// Maximum number of blocks. Default: 30.
    pub max: u32,
    /// Time after which no new block starts, once `min` blocks are complete. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// The study ends when every interval of the first metric is narrower than this on both sides. Default: `5 %`.
    pub precision: Share,
    /// Number of consecutive trials of a cell, refused or failed in the same way by fault of server or client, after
    /// which the cell is abandoned. Its further trials do not run, and end with the same reason. Default: never.
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
    /// Purpose and duration, one line.
    pub about: String,
    /// Replaces `lab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<String>,
    /// Replaces `limits`, which depend on the lab.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Settings that override those of `[workload]`.
    pub workload: Settings,
    /// Factors that replace the study's factors of the same names.
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
    /// The cells that it describes.
    pub cell: Selector,
    /// The metric with which to compare it.
    pub metric: String,
    /// The number in the metric's base unit (ns, bytes, bit/s, per second, share of 1).
    pub value: f64,
    /// The publication, and its definition of the metric if different.
    pub note: String,
}

//! Pairs of clients and servers: outcome, value and interaction.

use wirelab_model::metric::{Metric, Unit};
use wirelab_stats::analysis::{Pair, PairTable, Verdict};

use crate::Input;
use crate::failures::Failure;
use crate::fate::Fate;
use crate::layout::sentence;
use crate::numbers::{Scale, change};
use crate::summary::count;
use crate::words::phrase;

/// The meaning of the marks in a table.
pub(crate) const NOTE: &str = "✓ works: in every trial status, body, digest, negotiated protocol and a clean exit of both were right; \
     ! fails sometimes; ✗ fails, with the party to blame; ∅ unsupported; ▲ higher and ▼ lower than client and server predict, beyond chance \
     (all pairs tested, Holm's correction).";

/// A table of one metric under one combination of the other factors.
pub(crate) struct View<'a> {
    pub input: &'a Input<'a>,
    pub table: &'a PairTable,
    pub failures: &'a [Failure],
    pub metric: Option<&'a Metric>,
    pub scale: Scale,
    /// The smallest and the largest median.
    range: Option<(f64, f64)>,
}

/// The content of a pair's tile.
pub(crate) struct Tile {
    pub mark: &'static str,
    /// The value, or the words in its place.
    pub shown: String,
    /// A significant interaction: its mark, and the change against the prediction.
    pub interaction: Option<(&'static str, String)>,
    /// Failures beside the value; empty without any.
    pub note: String,
    pub class: &'static str,
    /// The rank of the value within the range of the table, from 0 to [`STEPS`].
    pub step: Option<usize>,
}

/// The number of colour steps.
pub(crate) const STEPS: usize = 7;

/// Every table, metric by metric; empty if the study does not vary client and server.
pub(crate) fn views<'a>(input: &'a Input<'a>, failures: &'a [Failure]) -> Vec<View<'a>> {
    input.analysis.pairs.iter().map(|table| View::of(input, table, failures)).collect()
}

impl<'a> View<'a> {
    fn of(input: &'a Input<'a>, table: &'a PairTable, failures: &'a [Failure]) -> Self {
        let metric = input.metric(&table.metric);
        let medians: Vec<f64> =
            table.pairs.iter().filter_map(|pair| Some(input.estimate(pair.cell, &table.metric)?.median)).collect();
        let scale = Scale::of(metric.map_or(Unit::Count, |metric| metric.unit), medians.iter().copied());
        let range =
            medians.iter().copied().map(|median| (median, median)).reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
        Self { input, table, failures, metric, scale, range }
    }

    /// `HTTP/3`; empty if the study varies only client and server.
    pub(crate) fn place(&self) -> String {
        let words = sentence(&self.table.levels);
        words.strip_prefix("protocol ").map_or_else(|| words.clone(), str::to_owned)
    }

    /// `HTTP/3, median response time`.
    pub(crate) fn subject(&self) -> String {
        let metric = self.metric.map_or_else(|| self.table.metric.clone(), |metric| phrase(metric.title));
        let place = self.place();
        format!("{place}{}{metric}", if place.is_empty() { "" } else { ", " })
    }

    /// `HTTP/3, median response time (µs)`.
    pub(crate) fn title(&self) -> String {
        let unit = if self.scale.name.is_empty() { String::new() } else { format!(" ({})", self.scale.name) };
        format!("{}{unit}", self.subject())
    }

    pub(crate) fn pair(&self, client: &str, server: &str) -> Option<&'a Pair> {
        self.table.pairs.iter().find(|pair| pair.client == client && pair.server == server)
    }

    pub(crate) fn fate(&self, pair: &Pair) -> Fate {
        Fate::of(self.input, self.failures, pair.cell)
    }

    /// The tile of a client and a server.
    pub(crate) fn tile(&self, client: &str, server: &str) -> Tile {
        let nothing = |class, shown: &str| Tile {
            mark: "",
            shown: shown.to_owned(),
            interaction: None,
            note: String::new(),
            class,
            step: None,
        };
        let Some(pair) = self.pair(client, server) else { return nothing("absent", "not in the study") };
        let fate = self.fate(pair);
        let estimate = self.input.estimate(pair.cell, &self.table.metric).filter(|_| fate.works());
        let median = estimate.map(|estimate| estimate.median);
        let instead = || if fate.works() { "not measured" } else { fate.short() }.to_owned();
        let interaction = match pair.verdict {
            Verdict::More => Some("▲"),
            Verdict::Less => Some("▼"),
            Verdict::Equivalent | Verdict::CannotTell { .. } => None,
        };
        Tile {
            mark: fate.mark(),
            shown: median.map_or_else(instead, |median| self.scale.number(median)),
            interaction: interaction.and_then(|mark| Some((mark, change(pair.interaction?)))),
            note: if median.is_some() { fate.note() } else { String::new() },
            class: fate.class(),
            step: median.map(|median| self.step(median)),
        }
    }

    /// The colour step on a logarithmic scale, because values differ by factors.
    fn step(&self, median: f64) -> usize {
        let (low, high) = self.range.unwrap_or((median, median));
        let share = (median / low).ln() / (high / low).ln();
        if share.is_finite() { (share * STEPS as f64).round() as usize } else { 0 }
    }

    /// The rows of the table with these servers; the first row is the heading.
    pub(crate) fn lines(&self, servers: &[String]) -> Vec<Vec<String>> {
        let mut lines =
            vec![["client ╲ server".to_owned()].into_iter().chain(servers.iter().cloned()).collect::<Vec<_>>()];
        for client in &self.table.clients {
            let tiles = servers.iter().map(|server| self.tile(client, server).line());
            lines.push([client.clone()].into_iter().chain(tiles).collect());
        }
        lines
    }

    /// The number of pairs by outcome.
    pub(crate) fn tally(&self) -> String {
        let fates: Vec<_> = self.table.pairs.iter().map(|pair| self.fate(pair)).collect();
        let words = Fate::tally(&fates);
        let place = self.place();
        format!("{place}{}{}: {words}.", if place.is_empty() { "" } else { ", " }, count(fates.len(), "pair"))
    }

    /// The failure of a pair, and how both sides do with other partners; `None` if the pair works.
    pub(crate) fn trouble(&self, pair: &Pair) -> Option<String> {
        let fate = self.fate(pair);
        let what = fate.sentence()?;
        let others = |same: fn(&Pair, &Pair) -> bool| {
            let others: Vec<_> =
                self.table.pairs.iter().filter(|other| other.cell != pair.cell && same(pair, other)).collect();
            (others.iter().filter(|other| self.fate(other).works()).count(), others.len())
        };
        let of_client = others(|pair, other| pair.client == other.client);
        let of_server = others(|pair, other| pair.server == other.server);
        let seen = if fate.is_failure() { self.seen(pair, of_client, of_server) } else { String::new() };
        Some(format!("{}: {what}{seen}", self.name(pair)))
    }

    /// A hint on the cause of a failure: how both sides do with other partners.
    fn seen(&self, pair: &Pair, client: (usize, usize), server: (usize, usize)) -> String {
        let (with_servers, with_clients) = (
            format!("{} works with {} of {}", pair.client, client.0, count(client.1, "other server")),
            format!("{} with {} of {}", pair.server, server.0, count(server.1, "other client")),
        );
        let follows = match (client.0 > 0, server.0 > 0) {
            (true, true) => "check the combination",
            (false, true) if client.1 > 0 => "check the client",
            (true, false) if server.1 > 0 => "check the server",
            _ => return String::new(),
        };
        format!(" ({with_servers}, {with_clients}: {follows})")
    }

    /// `HTTP/3, quic-go with nginx`.
    pub(crate) fn name(&self, pair: &Pair) -> String {
        let place = self.place();
        format!("{place}{}{} with {}", if place.is_empty() { "" } else { ", " }, pair.client, pair.server)
    }
}

impl Tile {
    /// The tile in one line: `✓ 0.132 ▲ +25 %`, with its note in brackets.
    pub(crate) fn line(&self) -> String {
        let interaction = self.interaction.as_ref().map_or_else(String::new, |(mark, size)| format!(" {mark}{size}"));
        let note = if self.note.is_empty() { String::new() } else { format!(" ({})", self.note) };
        format!("{} {}{interaction}{note}", self.mark, self.shown).trim().to_owned()
    }
}

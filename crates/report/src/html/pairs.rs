//! The matrix of clients and servers: a table per metric and combination of the other factors. Tiles are text; their
//! colour shows the size of the value.

use wirelab_stats::analysis::Pair;

use crate::Input;
use crate::failures::Failure;
use crate::pairs::{STEPS, Tile, View, views};

/// The section on pairs.
pub(super) struct Pairs {
    /// The number of working pairs, by combination of the other factors.
    pub tallies: Vec<String>,
    /// The pairs that fail, each in a sentence.
    pub troubles: Vec<String>,
    pub tables: Vec<PairMatrix>,
    /// The requirements of a verdict.
    pub needs: String,
    /// Steps of the colour, for the legend.
    pub steps: std::ops::RangeInclusive<usize>,
}

/// One matrix.
pub(super) struct PairMatrix {
    pub id: String,
    pub title: String,
    pub servers: Vec<String>,
    pub rows: Vec<(String, Vec<TileView>)>,
    /// The pairs that are better or worse than predicted, in sentences.
    pub odd: Vec<String>,
    /// The number of pairs by verdict; `None` if no pair has enough blocks.
    pub rest: Option<String>,
    /// Every pair in a sentence.
    pub sentences: Vec<String>,
}

pub(super) struct TileView {
    pub class: String,
    pub mark: &'static str,
    pub shown: String,
    pub interaction: String,
    pub note: String,
    /// Failure and interaction in sentences, for the tooltip.
    pub title: String,
}

/// `None` if the study does not vary client and server.
pub(super) fn pairs(input: &Input, failures: &[Failure]) -> Option<Pairs> {
    let views = views(input, failures);
    let first = views.first()?.table.metric.as_str();
    let of_first = || views.iter().filter(|view| view.table.metric == first);
    Some(Pairs {
        tallies: of_first().map(View::tally).collect(),
        troubles: of_first().flat_map(|view| view.table.pairs.iter().filter_map(|pair| view.trouble(pair))).collect(),
        tables: views.iter().enumerate().map(|(number, view)| matrix(number, view)).collect(),
        needs: views[0].needs(),
        steps: 0..=STEPS,
    })
}

fn matrix(number: usize, view: &View) -> PairMatrix {
    let table = view.table;
    let row = |client: &String| {
        let tile = |server: &String| tile(view, view.tile(client, server), view.pair(client, server));
        (client.clone(), table.servers.iter().map(tile).collect())
    };
    PairMatrix {
        id: format!("pairs-{number}"),
        title: crate::words::upper_first(&view.title()),
        servers: table.servers.clone(),
        rows: table.clients.iter().map(row).collect(),
        odd: view.odd().into_iter().filter_map(|pair| view.interaction(pair)).collect(),
        rest: view.judges().then(|| view.rest()),
        sentences: table.pairs.iter().filter_map(|pair| view.interaction(pair)).collect(),
    }
}

fn tile(view: &View, tile: Tile, pair: Option<&Pair>) -> TileView {
    let step = tile.step.map_or_else(String::new, |step| format!(" v{step}"));
    let sentences =
        pair.map(|pair| [view.trouble(pair), view.interaction(pair)].into_iter().flatten().collect::<Vec<_>>());
    TileView {
        class: format!("{}{step}", tile.class),
        mark: tile.mark,
        shown: tile.shown,
        interaction: tile.interaction.map_or_else(String::new, |(mark, size)| format!("{mark} {size}")),
        note: tile.note,
        title: sentences.unwrap_or_default().join(". "),
    }
}

//! Pairs of clients and servers: the interaction of each pair, beyond the prediction from its two sides.
//!
//! Effects multiply: the model for the logarithm of a value is an effect of the client plus an effect of the server.
//! Each pair is compared with the prediction from the other pairs ([`crate::additive`]). The size is that of the cells'
//! medians; its interval resamples blocks, all pairs of a block together. The rank test takes one value of each pair
//! per block, from the same model for the trials of that block. Holm's correction covers all pairs under all
//! combinations, in all primary metrics.
//!
//! An odd pair distorts the predictions for the other pairs of its client and its server, which then look odd in the
//! other direction (Gentleman and Wilk 1975, "Detecting outliers in a two-way table"). The oddest pair is therefore
//! removed from the predictions and the others are tested again, until no odd pair is left.

use indexmap::{IndexMap, IndexSet};
use wirelab_model::plan::Plan;
use wirelab_model::study::Study;

use crate::analysis::{Pair, PairTable};
use crate::bootstrap::Bootstrap;
use crate::compare::{ALPHA, PairedEffect, Rule, blocks_needed};
use crate::family;
use crate::holm::holm;
use crate::interaction::Table;
use crate::trials::Trials;

/// The factors whose levels are the endpoints of the two sides.
const SIDES: [&str; 2] = ["client", "server"];

/// At most one pair in this many is removed from the predictions; if more are odd, the model does not fit.
const MOST_ODD: usize = 4;

/// The tables of every compared metric; empty if the study does not vary both sides.
pub fn pairs(study: &Study, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Vec<PairTable> {
    let fields = fields(plan);
    let metrics = &study.compare.metrics;
    let tables: Vec<Vec<Table>> = metrics.iter().map(|metric| tables(metric, &fields, trials)).collect();
    let p: Vec<Vec<f64>> = tables.iter().map(|tables| p_of(tables)).collect();
    let corrected = family::correct(&study.compare, &p);
    let in_metric = |((metric, tables), corrected): ((&String, Vec<Table>), Vec<f64>)| {
        results(metric, study, &fields, &tables, corrected, bootstrap)
    };
    metrics.iter().zip(tables).zip(corrected).flat_map(in_metric).collect()
}

/// Cells that differ only in client and server.
#[derive(Default)]
struct Field {
    levels: IndexMap<String, String>,
    clients: IndexSet<String>,
    servers: IndexSet<String>,
    /// Cell numbers with the numbers of client and server.
    cells: Vec<(usize, (usize, usize))>,
}

/// The fields of the plan, without A/A twins.
fn fields(plan: &Plan) -> Vec<Field> {
    let mut fields: IndexMap<Vec<(String, String)>, Field> = IndexMap::new();
    for (number, cell) in plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none()) {
        let [client, server] = SIDES.map(|side| cell.levels.get(side));
        let (Some(client), Some(server)) = (client, server) else { continue };
        // Factors with these names may set other things than endpoints.
        if (client, Some(server)) != (&cell.job.client, cell.job.server()) {
            continue;
        }
        let others = cell.levels.iter().filter(|(name, _)| !SIDES.contains(&name.as_str()));
        let levels: IndexMap<_, _> = others.map(|(name, level)| (name.clone(), level.clone())).collect();
        let key = levels.clone().into_iter().collect();
        let field = fields.entry(key).or_insert_with(|| Field { levels, ..Field::default() });
        let client = field.clients.insert_full(client.clone()).0;
        let server = field.servers.insert_full(server.clone()).0;
        field.cells.push((number, (client, server)));
    }
    fields.into_values().collect()
}

fn tables(metric: &str, fields: &[Field], trials: &Trials<'_>) -> Vec<Table> {
    let values =
        |field: &Field| field.cells.iter().map(|(cell, place)| (*place, trials.in_blocks(*cell, metric))).collect();
    let mut tables: Vec<Table> = fields.iter().map(|field| Table::of(values(field))).collect();
    remove_odd_pairs(&mut tables);
    tables
}

fn results(
    metric: &str,
    study: &Study,
    fields: &[Field],
    tables: &[Table],
    corrected: Vec<f64>,
    bootstrap: &mut Bootstrap,
) -> Vec<PairTable> {
    let mut corrected = corrected.into_iter();
    // With one client or one server no prediction exists, so such pairs are no hypotheses.
    let family = fields.iter().filter(|field| field.clients.len() > 1 && field.servers.len() > 1);
    let family = family::size(&study.compare, metric, family.map(|field| field.cells.len()).sum());
    let rule = Rule::plain(blocks_needed(family, ALPHA), study.compare.margin.0);
    let mut table = |(field, table): (&Field, &Table)| {
        let pair = |((cell, (client, server)), effect): (&(usize, (usize, usize)), Option<PairedEffect>)| {
            let p_holm = effect.as_ref().and_then(|effect| effect.p).and_then(|_| corrected.next());
            let effect = effect.unwrap_or_else(|| PairedEffect::of(&[], &[], &mut Bootstrap::new(0)));
            Pair {
                cell: *cell,
                client: field.clients[*client].clone(),
                server: field.servers[*server].clone(),
                predicted: effect.ratio.and_then(|size| Some(table.median((*client, *server))? / size)),
                interaction: effect.ratio,
                interval: effect.interval_95,
                blocks: effect.blocks,
                p: effect.p,
                p_holm,
                verdict: effect.verdict(p_holm, &rule),
            }
        };
        PairTable {
            metric: metric.to_owned(),
            levels: field.levels.clone(),
            clients: field.clients.iter().cloned().collect(),
            servers: field.servers.iter().cloned().collect(),
            pairs: field.cells.iter().zip(table.effects(bootstrap)).map(pair).collect(),
            blocks_needed: rule.needed,
        }
    };
    fields.iter().zip(tables).map(&mut table).collect()
}

/// The P values of all tables, in their order.
fn p_of(tables: &[Table]) -> Vec<f64> {
    tables.iter().flat_map(Table::p).flatten().collect()
}

/// Removes the pairs that are odd beyond chance from the predictions, the oddest first.
fn remove_odd_pairs(tables: &mut [Table]) {
    let all: usize = tables.iter().map(Table::len).sum();
    for _ in 0..all / MOST_ODD {
        let mut corrected = holm(&p_of(tables)).into_iter();
        let mut oddest: Option<(f64, usize, usize)> = None;
        for (number, table) in tables.iter().enumerate() {
            for (pair, (p, size)) in table.p().into_iter().zip(table.sizes()).enumerate() {
                let odd = p.and_then(|_| corrected.next()).is_some_and(|p| p <= ALPHA);
                let larger = oddest.is_none_or(|(largest, ..)| size.abs() > largest);
                if odd && larger && table.can_spare(pair) {
                    oddest = Some((size.abs(), number, pair));
                }
            }
        }
        let Some((_, table, pair)) = oddest else { return };
        tables[table].remove(pair);
    }
}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;

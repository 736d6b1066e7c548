//! CSV files in the tidy long format: one row per cell and metric, one row per comparison.

use wirelab_model::metric::{Metric, Unit};
use wirelab_model::plan::Cell;
use wirelab_stats::analysis::{CannotTell, Interval, Verdict};
use wirelab_stats::client_share::Shares;

use crate::Input;
use crate::columns::known;
use crate::failures::failures;
use crate::fate::Fate;
use crate::limits;
use crate::steady;

/// One row per cell and metric, with a column per factor. Numbers are in the metric's base unit. A missing number is an
/// empty field, and `not_measured` has the reason.
///
/// # Panics
/// Never: writing to memory cannot fail, and every row has as many fields as the header.
#[must_use]
pub fn cells_csv(input: &Input) -> String {
    let factors = factors(input);
    let mut header = vec!["cell".to_owned()];
    header.extend(factors.iter().cloned());
    header.extend(
        [
            "twin_of",
            "metric",
            "unit",
            "side",
            "better",
            "median",
            "interval_low",
            "interval_high",
            "confidence",
            "q1",
            "q3",
            "minimum",
            "maximum",
            "n",
            "outliers",
            "ok",
            "failed",
            "unsupported",
            "stationarity",
            "not_measured",
        ]
        .map(str::to_owned),
    );
    let mut rows = vec![header];
    let metrics = known(input);
    for (number, cell) in input.manifest.plan.cells.iter().enumerate() {
        for metric in &metrics {
            let mut row = row_start(number, cell, &factors);
            row.extend([metric.name.to_owned(), token(metric.unit), token(metric.side), token(metric.better)]);
            row.extend(estimate_fields(input, number, metric));
            row.extend(counts(input, number));
            row.push(steady::token(input, number).to_owned());
            let measured = input.estimate(number, metric.name).is_some();
            row.push(if measured { String::new() } else { input.why_missing(number, metric.name) });
            rows.push(row);
        }
        let named = row_start(number, cell, &factors);
        rows.extend(
            input.analysis.shares.get(number).iter().flat_map(|shares| share_rows(input, number, &named, shares)),
        );
    }
    written(rows)
}

/// Number, levels and twin of a cell.
fn row_start(number: usize, cell: &Cell, factors: &[String]) -> Vec<String> {
    let mut row = vec![number.to_string()];
    row.extend(factors.iter().map(|factor| cell.levels.get(factor).cloned().unwrap_or_default()));
    row.push(cell.twin_of.map_or_else(String::new, |twin| twin.to_string()));
    row
}

/// The rows of client, server and network; see [`limits`].
fn share_rows(input: &Input, number: usize, start: &[String], shares: &Shares) -> Vec<Vec<String>> {
    let row = |(name, value, why): (&str, Option<(f64, Option<Interval>)>, String)| {
        let mut row = start.to_vec();
        row.extend([name.to_owned(), token(Unit::Share), String::new(), String::new()]);
        let [low, high, confidence] = interval_fields(value.and_then(|(_, interval)| interval).as_ref());
        row.extend([value.map_or_else(String::new, |(share, _)| share.to_string()), low, high, confidence]);
        row.extend([const { String::new() }; 6]);
        row.extend(counts(input, number));
        row.push(String::new());
        row.push(why);
        row
    };
    limits::columns(shares).map(row).into()
}

/// Numbers of successful, failed and unsupported trials.
fn counts(input: &Input, number: usize) -> [String; 3] {
    let counts = input.cell(number).map(|cell| [cell.ok, cell.failed, cell.unsupported]);
    counts.map_or_else(|| [const { String::new() }; 3], |counts| counts.map(|n| n.to_string()))
}

fn estimate_fields(input: &Input, cell: usize, metric: &Metric) -> [String; 10] {
    let Some(estimate) = input.estimate(cell, metric.name) else {
        return [const { String::new() }; 10];
    };
    let [low, high, confidence] = interval_fields(estimate.interval.as_ref());
    [
        estimate.median.to_string(),
        low,
        high,
        confidence,
        estimate.quartiles.0.to_string(),
        estimate.quartiles.1.to_string(),
        estimate.range.0.to_string(),
        estimate.range.1.to_string(),
        estimate.values.len().to_string(),
        estimate.outliers.len().to_string(),
    ]
}

/// One row per comparison and metric, with a column per factor of the cell.
///
/// # Panics
/// Never: writing to memory cannot fail, and every row has as many fields as the header.
#[must_use]
pub fn comparisons_csv(input: &Input) -> String {
    let factors = factors(input);
    let cells = &input.manifest.plan.cells;
    let mut header = vec!["cell".to_owned()];
    header.extend(factors.iter().cloned());
    header.extend(
        [
            "baseline",
            "baseline_label",
            "aa",
            "metric",
            "exploratory",
            "blocks",
            "ratio",
            "interval_low",
            "interval_high",
            "confidence",
            "p",
            "p_holm",
            "noise_low",
            "noise_high",
            "verdict",
            "why",
        ]
        .map(str::to_owned),
    );
    let mut rows = vec![header];
    for compared in &input.analysis.comparisons {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let mut row = vec![compared.cell.to_string()];
        let levels = cells.get(compared.cell).map(|cell| &cell.levels);
        row.extend(factors.iter().map(|factor| levels.and_then(|l| l.get(factor)).cloned().unwrap_or_default()));
        row.push(compared.baseline.to_string());
        row.push(cells.get(compared.baseline).map_or_else(String::new, wirelab_model::plan::Cell::label));
        row.extend([compared.aa.to_string(), compared.metric.clone()]);
        row.extend([compared.exploratory.to_string(), compared.blocks.to_string()]);
        row.push(number(compared.ratio));
        row.extend(interval_fields(compared.interval.as_ref()));
        row.extend([number(compared.p), number(compared.p_holm)]);
        let [low, high, _] = interval_fields(compared.noise_floor.as_ref());
        row.extend([low, high]);
        let (verdict, why) = verdict_tokens(&compared.verdict);
        row.extend([verdict.to_owned(), why.to_owned()]);
        rows.push(row);
    }
    written(rows)
}

/// One row per contest and cell, with a column per factor: the leader, without a comparison, and each rival.
///
/// # Panics
/// Never: writing to memory cannot fail, and every row has as many fields as the header.
#[must_use]
pub fn contests_csv(input: &Input) -> String {
    let factors = factors(input);
    let cells = &input.manifest.plan.cells;
    let mut header = vec!["metric".to_owned(), "outcome".to_owned(), "standing".to_owned(), "cell".to_owned()];
    header.extend(factors.iter().cloned());
    let columns =
        ["leader", "blocks", "blocks_needed", "ratio", "interval_low", "interval_high", "confidence", "p", "p_holm"];
    header.extend(columns.map(str::to_owned));
    let mut rows = vec![header];
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for contest in &input.analysis.contests {
        let row = |cell: usize, standing: String, more: [String; 7]| {
            let mut row = vec![contest.metric.clone(), token(contest.outcome), standing, cell.to_string()];
            let levels = cells.get(cell).map(|cell| &cell.levels);
            row.extend(factors.iter().map(|factor| levels.and_then(|l| l.get(factor)).cloned().unwrap_or_default()));
            row.push(contest.leader.map_or_else(String::new, |leader| leader.to_string()));
            let [blocks, more @ ..] = more;
            row.extend([blocks, contest.blocks_needed.to_string()].into_iter().chain(more));
            row
        };
        rows.extend(contest.leader.map(|leader| row(leader, "leader".to_owned(), [const { String::new() }; 7])));
        rows.extend(contest.rivals.iter().map(|rival| {
            let [low, high, confidence] = interval_fields(rival.interval.as_ref());
            let blocks = rival.blocks.to_string();
            let more = [blocks, number(rival.ratio), low, high, confidence, number(rival.p), number(rival.p_holm)];
            row(rival.cell, token(rival.standing), more)
        }));
    }
    written(rows)
}

/// One row per metric and pair of a client and a server, with a column per factor: outcome, value and interaction.
///
/// # Panics
/// Never: writing to memory cannot fail, and every row has as many fields as the header.
#[must_use]
pub fn pairs_csv(input: &Input) -> String {
    let factors = factors(input);
    let failures = failures(input);
    let mut header = vec!["metric".to_owned(), "cell".to_owned()];
    header.extend(factors.iter().cloned());
    let columns = [
        "outcome",
        "ok",
        "failed",
        "unsupported",
        "blame",
        "reason",
        "median",
        "predicted",
        "interaction",
        "interval_low",
        "interval_high",
        "confidence",
        "blocks",
        "blocks_needed",
        "p",
        "p_holm",
        "verdict",
        "why",
    ];
    header.extend(columns.map(str::to_owned));
    let mut rows = vec![header];
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for table in &input.analysis.pairs {
        for pair in &table.pairs {
            let mut row = vec![table.metric.clone(), pair.cell.to_string()];
            let levels = input.manifest.plan.cells.get(pair.cell).map(|cell| &cell.levels);
            row.extend(factors.iter().map(|factor| levels.and_then(|l| l.get(factor)).cloned().unwrap_or_default()));
            row.push(Fate::of(input, &failures, pair.cell).token().to_owned());
            let counts = input.cell(pair.cell).map(|cell| [cell.ok, cell.failed, cell.unsupported]);
            row.extend(counts.map_or_else(|| [const { String::new() }; 3], |counts| counts.map(|n| n.to_string())));
            let failure = failures.iter().find(|failure| failure.cell == pair.cell);
            row.extend(
                failure.map_or_else(Default::default, |failure| [failure.blame.clone(), failure.reason.clone()]),
            );
            row.push(number(input.estimate(pair.cell, &table.metric).map(|estimate| estimate.median)));
            row.extend([number(pair.predicted), number(pair.interaction)]);
            row.extend(interval_fields(pair.interval.as_ref()));
            row.extend([pair.blocks.to_string(), table.blocks_needed.to_string(), number(pair.p), number(pair.p_holm)]);
            let (verdict, why) = verdict_tokens(&pair.verdict);
            row.extend([verdict.to_owned(), why.to_owned()]);
            rows.push(row);
        }
    }
    written(rows)
}

const fn verdict_tokens(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Less => ("less", ""),
        Verdict::More => ("more", ""),
        Verdict::Equivalent => ("equivalent", ""),
        Verdict::CannotTell { why: CannotTell::TooFewBlocks } => ("cannot_tell", "too_few_blocks"),
        Verdict::CannotTell { why: CannotTell::TooNoisy } => ("cannot_tell", "too_noisy"),
        Verdict::CannotTell { why: CannotTell::Correction } => ("cannot_tell", "correction"),
        Verdict::CannotTell { why: CannotTell::NoiseFloor } => ("cannot_tell", "noise_floor"),
        Verdict::CannotTell { why: CannotTell::NotEnded } => ("cannot_tell", "not_ended"),
        Verdict::CannotTell { why: CannotTell::UnequalFailures } => ("cannot_tell", "unequal_failures"),
        Verdict::CannotTell { why: CannotTell::ClientBound } => ("cannot_tell", "client_bound"),
        Verdict::CannotTell { why: CannotTell::NoValues } => ("cannot_tell", "no_values"),
    }
}

fn interval_fields(interval: Option<&Interval>) -> [String; 3] {
    interval.map_or_else(
        || [const { String::new() }; 3],
        |interval| [interval.low, interval.high, interval.confidence].map(|number| number.to_string()),
    )
}

/// Every factor of the plan, in the order of the study.
fn factors(input: &Input) -> Vec<String> {
    let mut factors = indexmap::IndexSet::new();
    for cell in &input.manifest.plan.cells {
        factors.extend(cell.levels.keys().cloned());
    }
    factors.into_iter().collect()
}

/// The JSON token of a unit, a side or a direction.
pub(crate) fn token(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

/// A cell with an apostrophe before its text if a spreadsheet would run it as a formula. Numbers stay as they are.
fn no_formula(cell: String) -> String {
    let begins_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if begins_formula && cell.parse::<f64>().is_err() { format!("'{cell}") } else { cell }
}

pub(crate) fn written(rows: Vec<Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows {
        let row = row.into_iter().map(no_formula);
        writer.write_record(row).expect("writing to memory cannot fail");
    }
    let bytes = writer.into_inner().expect("writing to memory cannot fail");
    String::from_utf8(bytes).expect("only strings were written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_a_spreadsheet_would_run_is_no_formula() {
        let cells = ["=1+1", "+cmd", "@SUM(A1)", "-x", "-5.2e3", "+7", "a=b", ""].map(str::to_owned);
        let expected = "'=1+1,'+cmd,'@SUM(A1),'-x,-5.2e3,+7,a=b,\n";
        assert_eq!(written(vec![cells.into()]), expected);
    }
}

//! Whether response times change with the age of connections and of the server's process.

use wirelab_model::warning::ordinal;
use wirelab_stats::ages::{Ages, ByAge, NotTested};

use crate::Input;
use crate::summary::count;

/// The number of cells that a list names.
const NAMED: usize = 3;

/// One sentence about all cells; `None` for a table, and where nothing was tested: the JSON has the reasons.
pub(crate) fn sentence(input: &Input) -> Option<String> {
    if input.table.is_some() {
        return None;
    }
    let ages = |of: fn(&Ages) -> ByAge| -> Vec<(usize, ByAge)> {
        let cells = 0..input.manifest.plan.cells.len();
        cells.filter_map(|cell| Some((cell, of(input.cell(cell)?.ages.as_ref()?)))).collect()
    };
    let kinds = [("connections", ages(|ages| ages.connections)), ("the server's process", ages(|ages| ages.server))];
    let is_tested = |(_, result): &(usize, ByAge)| !matches!(result, ByAge::NotTested { .. });
    let tested = kinds.iter().filter(|(_, found)| found.iter().any(is_tested));
    let parts: Vec<_> = tested.map(|(of, found)| format!("of {of}: {}", summary(input, found))).collect();
    (!parts.is_empty()).then(|| format!("Response times against the age {}.", parts.join("; ")))
}

/// The results of one kind of age: the number of stationary cells, the changes, and the rest by reason.
fn summary(input: &Input, found: &[(usize, ByAge)]) -> String {
    let mut parts = Vec::new();
    let stationary = found.iter().filter(|(_, result)| *result == ByAge::Stationary).count();
    if stationary > 0 {
        parts.push(format!("stationary in {stationary} of {}", count(found.len(), "cell")));
    }
    let changes: Vec<_> = found.iter().filter_map(|(cell, result)| Some((*cell, change(*result)?))).collect();
    if !changes.is_empty() {
        let label = |cell: usize| input.manifest.plan.cells[cell].label();
        let named = changes.iter().take(NAMED).map(|(cell, change)| format!("`{}` ({change})", label(*cell)));
        let more = changes.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("a change in {}{more}", named.collect::<Vec<_>>().join(", ")));
    }
    let short = found.iter().filter(|(_, result)| *result == ByAge::TooShort).count();
    if short > 0 {
        parts.push(format!("too few trials or requests to tell in {}", count(short, "cell")));
    }
    let mut reasons: Vec<(NotTested, usize)> = Vec::new();
    for (_, result) in found {
        let ByAge::NotTested { why } = result else { continue };
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, cells)) => *cells += 1,
            None => reasons.push((*why, 1)),
        }
    }
    parts.extend(reasons.into_iter().map(|(why, cells)| match cells == found.len() {
        true => format!("not tested ({})", words(why)),
        false => format!("not tested in {} ({})", count(cells, "cell"), words(why)),
    }));
    parts.join(", ")
}

fn change(result: ByAge) -> Option<String> {
    match result {
        ByAge::Changes { slowest, fastest, ratio } => {
            let [slowest, fastest] = [slowest, fastest].map(|part| ordinal(part as u32));
            Some(format!("the {slowest} fifth of their lives takes {ratio:.2} times as long as the {fastest}"))
        }
        ByAge::Trend { change } => Some(format!("{:+.1} % from the first trial to the last", change * 100.0)),
        ByAge::Stationary | ByAge::TooShort | ByAge::NotTested { .. } => None,
    }
}

const fn words(why: NotTested) -> &'static str {
    match why {
        NotTested::OneRequestEach => "each request has a connection of its own",
        NotTested::AsOldAsWindow => "no connection was opened within the window, so that its age is that of the window",
        NotTested::StartedByTrial => "each trial starts its server, so that its age is that of the window",
        NotTested::Timeline => "a timeline changes the conditions on purpose",
        NotTested::Histograms => "histograms have no times of single requests",
        NotTested::Pages => "the trials loaded pages",
        NotTested::OwnClient => "the client is your program, whose requests wirelab does not see",
        NotTested::NotRecorded => "the trials did not record it",
    }
}

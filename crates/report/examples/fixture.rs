//! Prints a report of the tests' fixture: `cargo run -p wirelab-report --example fixture -- html quick > /tmp/x.html`.

#[path = "../tests/report/fixture/mod.rs"]
mod fixture;

use fixture::Fixture;
use wirelab_report::Extent;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let format = arguments.next().unwrap_or_else(|| "html".to_owned());
    let fixture = match arguments.next().as_deref() {
        Some("large") => Fixture::large(),
        Some("conditions") => Fixture::conditions(),
        Some("pairs") => Fixture::pairs(),
        Some("tiny") => Fixture::tiny(),
        _ => Fixture::quick(),
    };
    let width = arguments.next().and_then(|width| width.parse().ok()).unwrap_or(120);
    let text = fixture.report(|input| match format.as_str() {
        "terminal" => wirelab_report::terminal(input, width, false, Extent::Full),
        "brief" => wirelab_report::terminal(input, width, false, Extent::Brief),
        "colour" => wirelab_report::terminal(input, width, true, Extent::Full),
        "markdown" => wirelab_report::markdown(input),
        "cells" => wirelab_report::cells_csv(input),
        "comparisons" => wirelab_report::comparisons_csv(input),
        "contests" => wirelab_report::contests_csv(input),
        "pairs" => wirelab_report::pairs_csv(input),
        "json" => wirelab_report::json(input),
        _ => wirelab_report::html(input),
    });
    print!("{text}");
}

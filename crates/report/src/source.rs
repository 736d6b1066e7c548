//! Reports on imported tables: how wirelab interpreted the columns, and the limits of a table.

use wirelab_model::table::{Design, Table};

use crate::Input;
use crate::words::upper_first;

/// The heading over the interpretation of the columns.
pub(crate) const TAKEN: &str = "How columns were interpreted";

/// The heading over the limits of a table.
pub(crate) const LIMITS: &str = "What a table cannot show";

/// The table and the interpretation of its columns, as names and values.
pub(crate) fn facts(table: &Table) -> Vec<(String, String)> {
    let mut facts = vec![(
        "table".to_owned(),
        format!("`{}`, {} rows, {} numbers used", table.file, table.rows, table.observations),
    )];
    facts.extend(table.taken.iter().map(|taken| {
        let guessed = if taken.guessed { " (assumed)" } else { "" };
        (taken.what.clone(), format!("{}{guessed}", taken.from))
    }));
    facts.extend(table.left_out.iter().map(|words| ("omitted".to_owned(), words.clone())));
    facts
}

/// The limits of a verdict on a table compared with a verdict on a run.
pub(crate) fn limits(input: &Input, table: &Table) -> Vec<String> {
    let mut limits = Vec::new();
    limits.extend(
        input.manifest.study.limits.iter().map(|limits| limits.split_whitespace().collect::<Vec<_>>().join(" ")),
    );
    if input.manifest.plan.comparisons.iter().all(|comparison| !comparison.aa) {
        limits.push(
            "No noise floor: the table has no A/A pair, so the difference between equal cells is unknown. Intervals and P reflect the scatter \
             within the table only. Any other systematic difference between the levels (time of day, a cache, other load) appears as a \
             difference between them."
                .to_owned(),
        );
    }
    limits.push(match table.design {
        Design::Blocks => {
            "Order: rows with the same block are assumed to have been measured together. The table does not show whether their order within \
             the block was random. If one level always came second, its values contain the effect of coming second. If the blocks \
             only number the rows, the pairs are arbitrary: omit the blocks."
                .to_owned()
        }
        Design::Independent => {
            "Order: the order of measurement is unknown. If the levels were measured one after the other (A A A B B B), every change in \
             between appears as a difference between the levels, and no statistics can separate it. Consecutive values often resemble \
             each other; intervals are then too narrow and P is too small."
                .to_owned()
        }
    });
    limits.push(
        "Failures: missing measurements are unknown. If loads or requests that failed or timed out were omitted, the comparison covers the \
         successful ones only."
            .to_owned(),
    );
    limits.push(
        "Not checked, because the table lacks the data: links, endpoints and their versions, the machine, effective \
         settings, load of client and server, single requests. Of all warnings, only the one about the order of rows can appear."
            .to_owned(),
    );
    limits
}

/// The amount of data, and the requirement of a verdict.
pub(crate) fn ground(input: &Input, table: &Table) -> String {
    let needed = input.blocks_needed();
    let cells = input.manifest.plan.cells.len();
    let counts = input.analysis.cells.iter().map(|cell| cell.ok);
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let each = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let what = match table.design {
        Design::Blocks => format!("{needed} blocks that both sides have"),
        Design::Independent => format!("{needed} observations on either side"),
    };
    upper_first(&format!("{cells} cells with {each} observations each; a verdict needs {what}."))
}

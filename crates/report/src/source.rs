//! What a report says of measurements that wirelab did not make: what was taken for what, and what a table cannot show.

use wirelab_model::table::{Design, Table};

use crate::Input;
use crate::words::upper_first;

/// The heading of what was taken for what.
pub(crate) const TAKEN: &str = "What was taken for what";

/// The heading of what a table cannot show.
pub(crate) const LIMITS: &str = "What a table cannot show";

/// Where the numbers come from: names and values.
pub(crate) fn facts(table: &Table) -> Vec<(String, String)> {
    let mut facts = vec![(
        "table".to_owned(),
        format!("`{}`, {} rows, of which {} numbers were taken", table.file, table.rows, table.observations),
    )];
    facts.extend(table.taken.iter().map(|taken| {
        let guessed = if taken.guessed { " (nobody said so)" } else { "" };
        (taken.what.clone(), format!("{}{guessed}", taken.from))
    }));
    facts.extend(table.left_out.iter().map(|words| ("left out".to_owned(), words.clone())));
    facts
}

/// What a verdict on a table means less than one on a run, each with its reason.
pub(crate) fn limits(input: &Input, table: &Table) -> Vec<String> {
    let mut limits = Vec::new();
    limits.extend(
        input.manifest.study.limits.iter().map(|limits| limits.split_whitespace().collect::<Vec<_>>().join(" ")),
    );
    if input.manifest.plan.comparisons.iter().all(|comparison| !comparison.aa) {
        limits.push(
            "No noise floor: the table has no A/A pair, the same thing measured twice under two names, so nobody knows by how much equal cells \
             differ here. Intervals and P know the scatter within the table and nothing else. Whatever differed between the levels from \
             beginning to end besides themselves (the hour, a cache, another load on the machine) is in every difference and is called one."
                .to_owned(),
        );
    }
    limits.push(match table.design {
        Design::Blocks => {
            "Order: rows with the same block were taken to have been measured together. Whether in random order within the block, a table does not \
             say; a level that always came second has in its values what coming second does. If the blocks only number the rows, the pairs \
             are arbitrary: leave the blocks out."
                .to_owned()
        }
        Design::Independent => {
            "Order: nothing says in which order it was measured. If one level was measured after the other (A A A B B B), everything that changed in \
             between is a difference of the levels, and no statistics can tell. Values that were measured in a row are often alike; then there \
             are fewer independent ones than rows, intervals are too narrow and P is too small."
                .to_owned()
        }
    });
    limits.push(
        "Failures: what is not in the table is not known. If loads or requests that failed or timed out were left out, the levels are compared by \
         those that went well."
            .to_owned(),
    );
    limits.push(
        "Not looked at, because a table does not have it: links, endpoints and their versions, the machine, what was in force and negotiated, \
         drift, how busy client and server were, samples of single requests. None of the warnings of a run can be raised."
            .to_owned(),
    );
    limits
}

/// How much there is, and what a verdict needs.
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

//! Prints the tables of `docs/statistics.md`: false verdicts, power and coverage in simulated studies.

use wirelab_stats::bootstrap::Bootstrap;
use wirelab_stats::simulation::{Length, Tally, median_covered, tally};

const STUDIES: u32 = 4000;
const UNTIL_PRECISE: Length = Length::UntilPrecise { min: 10, max: 30, precision: 0.05 };

fn main() {
    let mut bootstrap = Bootstrap::new(1);
    println!("{STUDIES} simulated comparisons each.\n");
    println!(
        "| true difference | blocks | comparisons in the study | lower | higher | equivalent | inconclusive | interval covers the truth | mean blocks |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for ratio in [1.0, 1.03, 1.05, 1.1] {
        for length in [Length::Blocks(10), Length::Blocks(20), Length::Blocks(30), UNTIL_PRECISE] {
            for family in [1, 8] {
                row(ratio, length, family, tally(STUDIES, ratio, length, family, &mut bootstrap));
            }
        }
    }
    println!("\n| trials | 95 % interval of a cell's median covers the truth |\n| --- | --- |");
    for trials in [5, 10, 15, 20, 30] {
        let covered = median_covered(STUDIES, trials, &mut bootstrap);
        println!("| {trials} | {} |", percent(f64::from(covered) / f64::from(STUDIES)));
    }
}

fn row(ratio: f64, length: Length, family: usize, tally: Tally) {
    let blocks = match length {
        Length::Blocks(blocks) => blocks.to_string(),
        Length::UntilPrecise { min, max, .. } => format!("{min} to {max}, until ± 5 %"),
    };
    let cannot_tell = tally.studies - tally.less - tally.more - tally.equivalent;
    let shares =
        [tally.less, tally.more, tally.equivalent, cannot_tell, tally.covered].map(|n| percent(tally.share(n)));
    let difference = if ratio == 1.0 { "none (A/A)".to_owned() } else { format!("{:.0} %", (ratio - 1.0) * 100.0) };
    let mean_blocks = tally.share(tally.blocks);
    println!("| {difference} | {blocks} | {family} | {} | {mean_blocks:.1} |", shares.join(" | "));
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

//! Which cells of two runs are the same.

use serde::Serialize;
use wirelab_model::difference::{Difference, differences};
use wirelab_model::plan::{Cell, Plan};

/// A cell that both runs have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// Its number in the first and in the second run.
    pub cells: [usize; 2],
    /// Its label in the second run.
    pub label: String,
    /// The settings that differ in spite of equal levels, for example another command line of the server.
    pub settings: Vec<Difference>,
}

/// The pairs of cells, in the order of the second run, and the cells of each run without a partner. Cells are the same
/// if all their settings are, whatever their levels are called; the others, if all their levels are. A/A twins repeat
/// other cells and are omitted.
#[must_use]
pub fn pairs(plans: [&Plan; 2]) -> (Vec<Pair>, [Vec<usize>; 2]) {
    let [mut first, mut second] = plans.map(|plan| {
        let own = plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none());
        own.map(|(number, _)| number).collect::<Vec<usize>>()
    });
    let mut found = Vec::new();
    let by_job = |one: &Cell, other: &Cell| one.job == other.job;
    let by_levels = |one: &Cell, other: &Cell| one.levels == other.levels;
    for is_same in [by_job as fn(&Cell, &Cell) -> bool, by_levels] {
        second.retain(|own| {
            let cell = &plans[1].cells[*own];
            let Some(place) = first.iter().position(|other| is_same(&plans[0].cells[*other], cell)) else {
                return true;
            };
            let other = first.remove(place);
            let settings = differences(&plans[0].cells[other].job, &cell.job);
            found.push(Pair { cells: [other, *own], label: cell.label(), settings });
            false
        });
    }
    found.sort_by_key(|pair| pair.cells[1]);
    (found, [first, second])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::plan;

    #[test]
    fn cells_pair_by_settings_and_then_by_levels() {
        // The settings of all cells of the fixture are equal, so that each needs some of its own.
        let own = |plan: &mut Plan| {
            for (number, cell) in plan.cells.iter_mut().enumerate() {
                cell.job.load.threads = Some(cell.twin_of.unwrap_or(number) as u16 + 1);
            }
        };
        let (mut first, mut second) = (plan(), plan());
        own(&mut first);
        own(&mut second);
        // Another name of a level, another setting of a cell, and a cell with another level and setting.
        second.cells[0].levels.insert("colour".to_owned(), "crimson".to_owned());
        second.cells[1].job.load.threads = Some(77);
        second.cells[3].levels.insert("colour".to_owned(), "green".to_owned());
        second.cells[3].job.load.threads = Some(99);
        let (pairs, alone) = super::pairs([&first, &second]);
        let cells: Vec<_> = pairs.iter().map(|pair| pair.cells).collect();
        assert_eq!((cells, alone), (vec![[0, 0], [1, 1], [2, 2]], [vec![3], vec![3]]));
        assert!(pairs[0].settings.is_empty() && pairs[2].settings.is_empty());
        let [difference] = pairs[1].settings.as_slice() else { panic!("{:?}", pairs[1]) };
        assert_eq!(difference.values, [Some("2".to_owned()), Some("77".to_owned())]);
    }
}

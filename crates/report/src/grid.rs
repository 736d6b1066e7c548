//! The layout of combinations of several factors in two dimensions: the factors of the rows and of the columns.

use indexmap::{IndexMap, IndexSet};

use crate::layout::level_title;

/// Combinations of levels as rows and columns. Several factors of an axis are nested, the outermost first.
pub(crate) struct Grid {
    pub rows: Axis,
    pub columns: Axis,
    /// The number of the combination by row and column; `None` if the study lacks it.
    pub tiles: Vec<Vec<Option<usize>>>,
}

/// The factors of an axis, outermost first, with their levels in the order of the study.
pub(crate) struct Axis {
    pub factors: Vec<(String, Vec<String>)>,
}

impl Grid {
    /// The grid of these combinations; `None` with fewer than two factors of at least two levels.
    pub(crate) fn of(combinations: &[&IndexMap<String, String>]) -> Option<Self> {
        let mut levels: IndexMap<&String, IndexSet<&String>> = IndexMap::new();
        for (factor, level) in combinations.iter().copied().flatten() {
            levels.entry(factor).or_default().insert(level);
        }
        levels.retain(|_, levels| levels.len() > 1);
        if levels.len() < 2 {
            return None;
        }
        let column = columns(&levels.values().map(IndexSet::len).collect::<Vec<_>>());
        let axis = |of_columns: bool| Axis {
            factors: levels
                .iter()
                .zip(&column)
                .filter(|(_, is_column)| **is_column == of_columns)
                .map(|((factor, levels), _)| ((*factor).clone(), levels.iter().map(|level| (*level).clone()).collect()))
                .collect(),
        };
        let (rows, columns) = (axis(false), axis(true));
        let tile = |row: &Place, column: &Place| {
            let has = |combination: &IndexMap<String, String>| {
                row.iter().chain(column).all(|(factor, level)| combination.get(*factor) == Some(*level))
            };
            combinations.iter().position(|combination| has(combination))
        };
        let column_places = columns.places();
        let tiles =
            rows.places().iter().map(|row| column_places.iter().map(|column| tile(row, column)).collect()).collect();
        Some(Self { rows, columns, tiles })
    }

    /// The varied levels of a combination in the order of the study: `25 ms, 1 %`.
    pub(crate) fn title(&self, combination: &IndexMap<String, String>) -> String {
        let varied =
            |factor: &String| self.rows.factors.iter().chain(&self.columns.factors).any(|(name, _)| name == factor);
        let levels = combination.iter().filter(|(factor, _)| varied(factor));
        levels.map(|(factor, level)| level_title(factor, level)).collect::<Vec<_>>().join(", ")
    }
}

/// A factor and a level for each factor of an axis.
type Place<'a> = Vec<(&'a String, &'a String)>;

impl Axis {
    /// The number of rows or columns.
    pub(crate) fn len(&self) -> usize {
        self.factors.iter().map(|(_, levels)| levels.len()).product()
    }

    /// The number of rows or columns that a level of the factor at this depth spans.
    pub(crate) fn span(&self, depth: usize) -> usize {
        self.factors[depth + 1..].iter().map(|(_, levels)| levels.len()).product()
    }

    /// Every row or column; the innermost factor changes first.
    fn places(&self) -> Vec<Place<'_>> {
        (0..self.len())
            .map(|number| {
                let level = |depth: usize| {
                    let (factor, levels) = &self.factors[depth];
                    (factor, &levels[number / self.span(depth) % levels.len()])
                };
                (0..self.factors.len()).map(level).collect()
            })
            .collect()
    }

    /// The titles of the levels of each row or column, outermost first.
    pub(crate) fn titles(&self) -> Vec<Vec<String>> {
        let title = |place: &Place| place.iter().map(|(factor, level)| level_title(factor, level)).collect();
        self.places().iter().map(title).collect()
    }
}

/// Chooses the factors of the columns by their numbers of levels. Screens scroll down and tiles are wider than high.
/// The grid therefore has as many columns as possible without more columns than rows. Among equal choices it has the
/// fewest nested factors on either axis, then the later factors of the study in the columns.
fn columns(counts: &[usize]) -> Vec<bool> {
    let is_column = |choice: usize, factor: usize| choice >> factor & 1 == 1;
    let product = |choice: usize, column: bool| -> usize {
        (0..counts.len()).filter(|factor| is_column(choice, *factor) == column).map(|factor| counts[factor]).product()
    };
    let deepest = |choice: usize| {
        let nested = choice.count_ones() as usize;
        nested.max(counts.len() - nested)
    };
    // Every choice with at least one factor on each axis. Each factor has two levels or more, so combinations outnumber
    // choices.
    let all = 1..(1_usize << counts.len()) - 1;
    let fitting = all.filter(|choice| product(*choice, true) <= product(*choice, false));
    let best = fitting.max_by_key(|choice| (product(*choice, true), std::cmp::Reverse(deepest(*choice)), *choice));
    let best = best.unwrap_or(1);
    (0..counts.len()).map(|factor| is_column(best, factor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combinations(factors: &[(&str, &[&str])]) -> Vec<IndexMap<String, String>> {
        let mut all = vec![IndexMap::new()];
        for (factor, levels) in factors {
            let with = |so_far: &IndexMap<String, String>| {
                let so_far = so_far.clone();
                levels.iter().map(move |level| {
                    let mut next = so_far.clone();
                    next.insert((*factor).to_owned(), (*level).to_owned());
                    next
                })
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }

    fn grid(all: &[IndexMap<String, String>]) -> Option<Grid> {
        Grid::of(&all.iter().collect::<Vec<_>>())
    }

    #[test]
    fn two_factors_make_one_axis_each_and_the_longer_one_the_rows() {
        assert_eq!(columns(&[3, 2]), [false, true]);
        assert_eq!(columns(&[2, 3]), [true, false]);
        assert_eq!(columns(&[2, 2]), [false, true]);
    }

    #[test]
    fn four_factors_nest_two_on_each_axis() {
        assert_eq!(columns(&[3, 2, 2, 2]), [false, false, true, true]);
        assert_eq!(columns(&[2, 2, 2, 2]), [false, false, true, true]);
    }

    #[test]
    fn there_are_never_more_columns_than_rows() {
        for counts in [vec![2, 2, 2], vec![5, 2, 3], vec![2, 2, 2, 2, 2], vec![9, 2], vec![2, 7, 3]] {
            let chosen = columns(&counts);
            let product = |column: bool| -> usize {
                counts.iter().zip(&chosen).filter(|(_, c)| **c == column).map(|(count, _)| count).product()
            };
            assert!(product(true) >= 2 && product(true) <= product(false), "{counts:?}: {chosen:?}");
        }
    }

    #[test]
    fn every_combination_has_one_tile_at_its_levels() {
        let all = combinations(&[
            ("trip", &["5 ms", "25 ms", "100 ms"]),
            ("loss", &["0 %", "1 %"]),
            ("place", &["here"]),
            ("rate", &["10", "100"]),
            ("size", &["1 KiB", "1 MiB"]),
        ]);
        let grid = grid(&all).unwrap();
        assert_eq!((grid.rows.len(), grid.columns.len()), (6, 4));
        assert_eq!((grid.rows.span(0), grid.rows.span(1)), (2, 1));
        assert_eq!(grid.rows.titles()[3], ["25 ms", "1 %"]);
        assert_eq!(grid.columns.titles()[1], ["10", "1 MiB"]);
        let combination = grid.tiles[3][1].unwrap();
        assert_eq!(grid.title(&all[combination]), "25 ms, 1 %, 10, 1 MiB");
        let mut tiles: Vec<_> = grid.tiles.iter().flatten().copied().map(Option::unwrap).collect();
        tiles.sort_unstable();
        assert_eq!(tiles, (0..24).collect::<Vec<_>>());
    }

    #[test]
    fn a_combination_that_the_study_leaves_out_is_an_empty_tile() {
        let mut all = combinations(&[("loss", &["0 %", "1 %"]), ("size", &["1 KiB", "1 MiB"])]);
        all.remove(2);
        assert_eq!(grid(&all).unwrap().tiles, [[Some(0), Some(1)], [None, Some(2)]]);
    }

    #[test]
    fn one_varied_factor_is_no_grid() {
        assert!(grid(&combinations(&[("loss", &["0 %", "1 %"]), ("place", &["here"])])).is_none());
        assert!(grid(&[]).is_none());
    }
}

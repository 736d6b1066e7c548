//! The arrangement of a study's cells: series (levels of the compared factor) in groups of equal other levels.

use indexmap::{IndexMap, IndexSet};
use wirelab_model::plan::Cell;
use wirelab_model::protocol::Protocol;

use crate::Input;

/// The cells of a study as groups of series.
pub(crate) struct Layout {
    /// The levels of the compared factor, in the order of the study.
    pub series: Vec<Series>,
    /// One per combination of the levels of all other factors, in the order of the study.
    pub groups: Vec<Group>,
    /// A factor other than the compared one whose levels are at least two payload sizes.
    pub size_factor: Option<String>,
}

/// A level of the compared factor.
pub(crate) struct Series {
    pub title: String,
}

/// Cells that differ only in the compared factor.
pub(crate) struct Group {
    /// The common levels of the cells.
    pub levels: IndexMap<String, String>,
    /// The cells; each A/A twin follows its original.
    pub rows: Vec<Row>,
}

/// A cell within a group.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// The number of the cell.
    pub cell: usize,
    pub series: usize,
    /// Whether the cell is the second half of an A/A pair.
    pub twin: bool,
}

impl Layout {
    pub(crate) fn new(input: &Input) -> Self {
        let cells = &input.manifest.plan.cells;
        let factor = &input.manifest.study.compare.factor;
        let mut levels = IndexSet::new();
        let mut groups: IndexMap<String, Group> = IndexMap::new();
        for (number, cell) in cells.iter().enumerate() {
            let level = cell.levels.get(factor).cloned().unwrap_or_else(|| "all".to_owned());
            let (series, _) = levels.insert_full(level);
            let others: IndexMap<_, _> =
                cell.levels.iter().filter(|(name, _)| *name != factor).map(|(n, l)| (n.clone(), l.clone())).collect();
            let key = sentence(&others);
            let group = groups.entry(key).or_insert_with(|| Group { levels: others, rows: Vec::new() });
            group.rows.push(Row { cell: number, series, twin: cell.twin_of.is_some() });
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            group.rows.sort_by_key(|row| (row.series, row.twin, row.cell));
        }
        let series = levels.into_iter().map(|level| Series { title: level_title(factor, &level) }).collect();
        Self { series, groups, size_factor: size_factor(cells, factor) }
    }

    /// The group of a cell.
    pub(crate) fn group_of(&self, cell: usize) -> Option<&Group> {
        self.groups.iter().find(|group| group.rows.iter().any(|row| row.cell == cell))
    }

    /// The title of a cell's series, with a mark for the second half of an A/A pair.
    pub(crate) fn row_title(&self, row: Row) -> String {
        let title = &self.series[row.series].title;
        if row.twin { format!("{title} (A/A)") } else { title.clone() }
    }

    /// The title of the series of a cell.
    pub(crate) fn cell_title(&self, cell: usize) -> String {
        let row = self.groups.iter().flat_map(|group| &group.rows).find(|row| row.cell == cell);
        row.map_or_else(|| format!("cell {cell}"), |row| self.row_title(*row))
    }
}

impl Group {
    /// The levels in words: `payload 1 KiB, connections 1`; `All cells` with a single group.
    pub(crate) fn title(&self) -> String {
        if self.levels.is_empty() { "All cells".to_owned() } else { sentence(&self.levels) }
    }

    /// The baseline: the cell with an A/A twin in this group.
    pub(crate) fn baseline(&self) -> Option<usize> {
        let twin = self.rows.iter().find(|row| row.twin)?;
        self.rows.iter().find(|row| !row.twin && row.series == twin.series).map(|row| row.cell)
    }
}

/// Levels as words: `payload 1 KiB, connections 1`.
pub(crate) fn sentence(levels: &IndexMap<String, String>) -> String {
    levels
        .iter()
        .map(|(factor, level)| format!("{factor} {}", level_title(factor, level)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The title of a level: the name of a protocol, otherwise the level as in the study.
pub(crate) fn level_title(factor: &str, level: &str) -> String {
    let protocol = Protocol::ALL.into_iter().find(|protocol| factor == "protocol" && protocol.token() == level);
    protocol.map_or_else(|| level.to_owned(), |protocol| protocol.title().to_owned())
}

/// The payload of a cell: the larger of its two bodies.
pub(crate) fn payload(cell: &Cell) -> u64 {
    let [request, response] = cell.job.work.body_sizes();
    request.0.max(response.0)
}

/// The factor that sets the payload: each of its levels has one payload, and these differ.
fn size_factor(cells: &[Cell], compared: &str) -> Option<String> {
    let names: IndexSet<_> =
        cells.iter().flat_map(|cell| cell.levels.keys()).filter(|name| *name != compared).collect();
    names
        .into_iter()
        .find(|name| {
            let mut sizes: IndexMap<&String, IndexSet<u64>> = IndexMap::new();
            for cell in cells {
                if let Some(level) = cell.levels.get(*name) {
                    sizes.entry(level).or_default().insert(payload(cell));
                }
            }
            let distinct: IndexSet<_> = sizes.values().flatten().collect();
            sizes.values().all(|of_level| of_level.len() == 1) && distinct.len() == sizes.len() && sizes.len() > 1
        })
        .cloned()
}

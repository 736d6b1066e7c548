//! Converts rows to cells and observations.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::{Cell, Job, Trial};
use wirelab_model::protocol::Protocol;

use crate::error::StudyError;
use crate::limits::{MAX_CELLS, MAX_NAME};
use crate::table::columns::{Columns, Numbers, is_skipped};
use crate::table::is_gap;
use crate::table::sheet::{Row, Sheet};

/// Maximum observations per cell: more would cost the bootstrap too much memory and time.
const MAX_OBSERVATIONS: usize = 10_000;

/// Maximum gaps that a message names.
const NAMED: usize = 4;

/// The cells of a table in file order, with their observations.
pub(super) struct Cells {
    /// Levels of the compared factor.
    pub levels: IndexSet<String>,
    /// Levels of each other factor.
    pub others: IndexMap<String, IndexSet<String>>,
    /// Cells that differ only in the compared factor are adjacent, in level order.
    pub cells: Vec<Cell>,
    pub records: Vec<TrialRecord>,
    /// Count of numbers in the table.
    pub observations: u32,
    /// Omitted rows and comparisons, one sentence each.
    pub left_out: Vec<String>,
}

/// A cell's key: levels of the other factors, and the level of the compared one.
type Key = (Vec<String>, String);

/// Observations of one cell.
#[derive(Default)]
struct Gathered {
    /// By block number, or by position if the table has no blocks.
    observations: IndexMap<u32, Values>,
    /// Line of each block.
    lines: HashMap<u32, usize>,
}

/// The cells of a sheet.
pub(super) fn cells(sheet: &Sheet, columns: &Columns) -> Result<Cells, StudyError> {
    let mut gatherer = Gatherer { sheet, columns, blocks: IndexSet::new(), cells: IndexMap::new(), gaps: Vec::new() };
    let mut skipped = 0_usize;
    for row in sheet.rows() {
        if is_skipped(row, &columns.skip) {
            skipped += 1;
        } else {
            gatherer.row(row)?;
        }
    }
    let mut left_out = Vec::new();
    if skipped > 0 {
        let value = |(column, values): &(usize, Vec<String>)| {
            format!("`{}` is {}", sheet.names()[*column], values.join(" or "))
        };
        let words = columns.skip.iter().map(value).collect::<Vec<_>>().join(", or ");
        left_out.push(format!("{skipped} {} in which {words}.", if skipped == 1 { "row" } else { "rows" }));
    }
    left_out.extend(gatherer.gaps_in_words());
    gatherer.finished(left_out)
}

struct Gatherer<'a> {
    sheet: &'a Sheet<'a>,
    columns: &'a Columns,
    blocks: IndexSet<String>,
    cells: IndexMap<Key, Gathered>,
    /// Line and column of each field without a number.
    gaps: Vec<(usize, usize)>,
}

impl Gatherer<'_> {
    fn row(&mut self, row: &Row) -> Result<(), StudyError> {
        let others = self.columns.by.iter().map(|column| self.level(row, *column)).collect::<Result<Vec<_>, _>>()?;
        let block = match self.columns.block {
            Some(column) => {
                let label = self.level(row, column)?;
                Some(self.blocks.insert_full(label).0 as u32)
            }
            None => None,
        };
        for (level, values) in self.values(row)? {
            let key = (others.clone(), level);
            let line = self.sheet.line(row);
            let gathered = self.cells.entry(key.clone()).or_default();
            let block = block.unwrap_or(gathered.observations.len() as u32);
            if gathered.observations.insert(block, values).is_some() {
                return Err(self.twice(row, &key, gathered_line(&self.cells[&key], block)));
            }
            gathered.lines.insert(block, line);
            if gathered.observations.len() > MAX_OBSERVATIONS {
                let message = format!(
                    "more than {MAX_OBSERVATIONS} observations of {}; replace runs of consecutive observations by \
                     their medians, which also reduces autocorrelation",
                    self.label(&key)
                );
                return Err(self.sheet.error(row, 0, message));
            }
        }
        Ok(())
    }

    /// Numbers of a row by level of the compared factor; levels without a number are absent.
    fn values(&mut self, row: &Row) -> Result<IndexMap<String, Values>, StudyError> {
        let mut values: IndexMap<String, Values> = IndexMap::new();
        let level = self.columns.levels.map(|column| self.level(row, column)).transpose()?;
        for measure in &self.columns.measures {
            let places: Vec<(String, usize)> = match &measure.numbers {
                Numbers::Long(column) => vec![(level.clone().unwrap_or_default(), *column)],
                Numbers::Wide(levels) => levels.clone(),
            };
            for (level, column) in places {
                let value = match self.number(row, column)? {
                    Some(number) => Value::Measured(number * measure.factor),
                    None => {
                        self.gaps.push((self.sheet.line(row), column));
                        Value::missing(Missing::EmptyField)
                    }
                };
                values.entry(level).or_default().insert(measure.name.clone(), value);
            }
        }
        values.retain(|_, values| values.values().any(|value| value.number().is_some()));
        Ok(values)
    }

    /// The number in a field; `None` for a gap.
    fn number(&self, row: &Row, column: usize) -> Result<Option<f64>, StudyError> {
        let field = row.field(column);
        if is_gap(field) {
            return Ok(None);
        }
        let error = |message: String| Err(self.sheet.error(row, column, message));
        match field.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            Ok(number) if number < 0.0 => error(format!(
                "`{field}` is below 0, and cells are compared by ratios, which need numbers of 0 or more"
            )),
            Ok(_) => {
                error(format!("`{field}` is not a finite number; leave the field empty where nothing was measured"))
            }
            Err(_) => {
                let pointed = field.replace(',', ".");
                let meant = (pointed != field && pointed.parse::<f64>().is_ok()).then_some(pointed);
                let message = format!(
                    "`{field}` in the column `{}` is not a number; leave the field empty where nothing was measured, \
                     or omit the row (`--skip COLUMN=VALUE`)",
                    self.sheet.names()[column]
                );
                Err(self.sheet.error(row, column, message).meant(meant))
            }
        }
    }

    fn level(&self, row: &Row, column: usize) -> Result<String, StudyError> {
        let field = row.field(column);
        let wrong = field.is_empty() || field.chars().count() > MAX_NAME || field.chars().any(char::is_control);
        if !wrong {
            return Ok(field.to_owned());
        }
        let message = format!("a level or block in `{}` needs 1 to {MAX_NAME} characters", self.sheet.names()[column]);
        Err(self.sheet.error(row, column, message))
    }

    fn twice(&self, row: &Row, key: &Key, first: usize) -> StudyError {
        let column = self.columns.block.unwrap_or_default();
        let name = &self.sheet.names()[column];
        let message = format!(
            "{} has `{name}` {} twice, the first time in line {first}: a block has one observation of each cell. Take the median of \
             repetitions within a block; a factor that is missing belongs to `--by`; if equal values of `{name}` do not mean \
             measured together, leave `--block` out",
            self.label(key),
            row.field(column)
        );
        self.sheet.error(row, column, message)
    }

    fn label(&self, (others, level): &Key) -> String {
        let names = self.columns.by.iter().map(|column| &self.sheet.names()[*column]);
        let mut words: Vec<_> = names.zip(others).map(|(name, level)| format!("{name}={level}")).collect();
        words.push(format!("{}={level}", self.columns.factor));
        format!("`{}`", words.join(" "))
    }

    fn gaps_in_words(&self) -> Option<String> {
        let count = self.gaps.len();
        let named = self.gaps.iter().take(NAMED);
        let mut places: Vec<_> =
            named.map(|(line, column)| format!("`{}` in line {line}", self.sheet.names()[*column])).collect();
        if count > NAMED {
            places.push(format!("and {} more", count - NAMED));
        }
        let fields =
            if count == 1 { "1 field without a number".to_owned() } else { format!("{count} fields without a number") };
        let words = format!(
            "{fields}: {}. No number was substituted. If the gaps are failed measurements, the remaining numbers look \
             better than the truth.",
            places.join(", ")
        );
        (count > 0).then_some(words)
    }

    /// The cells in order, with their observations as trials.
    fn finished(self, left_out: Vec<String>) -> Result<Cells, StudyError> {
        if self.cells.len() > MAX_CELLS {
            return Err(StudyError::new(format!(
                "the table has {} cells, at most {MAX_CELLS}; check that every column of `by` is a factor",
                self.cells.len()
            )));
        }
        // Wide tables: mapping order. Long tables: file order. Levels without a number make no cells.
        let present: IndexSet<String> = self.cells.keys().map(|(_, level)| level.clone()).collect();
        let named = self.columns.measures.iter().flat_map(|measure| match &measure.numbers {
            Numbers::Wide(levels) => &levels[..],
            Numbers::Long(_) => &[],
        });
        let mut levels: IndexSet<String> = named.map(|(level, _)| level.clone()).collect();
        levels.retain(|level| present.contains(level));
        levels.extend(present);
        let by: Vec<_> = self.columns.by.iter().map(|column| self.sheet.names()[*column].clone()).collect();
        let mut others: IndexMap<String, IndexSet<String>> =
            by.iter().map(|name| (name.clone(), IndexSet::new())).collect();
        let groups: IndexSet<&Vec<String>> = self.cells.keys().map(|(others, _)| others).collect();
        let (mut cells, mut records, mut observations) = (Vec::new(), Vec::new(), 0);
        for group in groups {
            for (name, level) in by.iter().zip(group) {
                others.entry(name.clone()).or_default().insert(level.clone());
            }
            for level in &levels {
                let Some(gathered) = self.cells.get(&(group.clone(), level.clone())) else { continue };
                let number = cells.len();
                let of_cell = by.iter().cloned().zip(group.iter().cloned());
                let levels = of_cell.chain([(self.columns.factor.clone(), level.clone())]).collect();
                cells.push(Cell { levels, twin_of: None, job: unknown_job() });
                for (block, values) in &gathered.observations {
                    observations += values.values().filter(|value| value.number().is_some()).count() as u32;
                    records.push(record(number, records.len() as u32, *block, values.clone()));
                }
            }
        }
        Ok(Cells { levels, others, cells, records, observations, left_out })
    }
}

fn gathered_line(gathered: &Gathered, block: u32) -> usize {
    gathered.lines.get(&block).copied().unwrap_or_default()
}

/// The actual workload is unknown, but a plan requires a job. Reports of tables do not read it; a test checks this.
fn unknown_job() -> Job {
    Job::plain(Protocol::Udp)
}

fn record(cell: usize, number: u32, block: u32, values: Values) -> TrialRecord {
    TrialRecord {
        trial: Trial { number, block, position: 0, cell, seed: 0 },
        at: String::new(),
        took_ns: 0,
        outcome: Outcome::Ok,
        window_ns: 0,
        values,
        results: None,
        results_sha256: None,
        server: [].into(),
        client: [].into(),
        timeline: None,
        clients: Vec::new(),
        profile: Vec::new(),
        lives: None,
        warmed_up: None,
        processors: None,
        warnings: Vec::new(),
    }
}

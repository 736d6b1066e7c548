//! Determines the role of each column, from the mapping and, where only one choice is possible, from the data.

use indexmap::IndexMap;
use wirelab_model::metric::{Better, Unit};
use wirelab_model::table::Taken;

use crate::error::StudyError;
use crate::factor::level_name;
use crate::locate::{Step, steps};
use crate::table::mapping::{Mapping, MetricMapping};
use crate::table::sheet::Sheet;
use crate::table::{is_gap, unit};
use crate::words::{nearest, one_of};

/// Columns by role.
pub(super) struct Columns {
    /// Name of the compared factor.
    pub factor: String,
    /// Column with its levels; absent: each metric has one column per level.
    pub levels: Option<usize>,
    /// Columns of the other factors.
    pub by: Vec<usize>,
    pub block: Option<usize>,
    /// Columns and values whose rows are omitted.
    pub skip: Vec<(usize, Vec<String>)>,
    pub measures: Vec<Measure>,
    /// Decisions about columns, as text for the report.
    pub taken: Vec<Taken>,
}

/// A metric and the columns of its numbers.
pub(super) struct Measure {
    pub name: String,
    pub title: String,
    pub meaning: String,
    pub unit: Unit,
    pub better: Better,
    /// Factor from the table's unit to the base unit.
    pub factor: f64,
    pub numbers: Numbers,
}

/// Location of a metric's numbers.
pub(super) enum Numbers {
    /// One column; another column has the levels.
    Long(usize),
    /// One column per level.
    Wide(Vec<(String, usize)>),
}

/// Names of columns that count rows instead of measuring.
const COUNTERS: [&str; 12] =
    ["run", "block", "rep", "repetition", "iteration", "trial", "round", "id", "index", "n", "time", "timestamp"];

/// Assigns the columns of a sheet by a mapping.
pub(super) fn columns(sheet: &Sheet, mapping: &Mapping) -> Result<Columns, StudyError> {
    let mut reader = Reader { sheet, used: vec![false; sheet.names().len()], taken: Vec::new() };
    let given = &mapping.columns;
    let by = reader.list("by", &given.by)?;
    let block = given.block.as_ref().map(|name| reader.column(name, &steps!["columns", "block"])).transpose()?;
    reader.list("ignore", &given.ignore)?;
    let skip = skip(sheet, &given.skip)?;
    let (factor, levels, metrics) = reader.form(mapping, &skip)?;
    let mut measures = Vec::new();
    for (name, metric) in &metrics {
        measures.push(reader.measure(name, &with_defaults(metric, mapping), levels.is_some())?);
    }
    reader.all_used()?;
    let names =
        |columns: &[usize]| columns.iter().map(|column| format!("`{}`", sheet.names()[*column])).collect::<Vec<_>>();
    let guessed = mapping.compare.factor.is_none();
    let only = if guessed { ", the only one without numbers" } else { "" };
    let wide = || format!("`{factor}`, with a column for each level");
    let from = levels.map_or_else(wide, |column| format!("{}{only}", plural(&names(&[column]))));
    reader.note("factor", from, guessed);
    if !by.is_empty() {
        reader.note("cells", format!("{}, whose values are never pooled", plural(&names(&by))), false);
    }
    match block {
        Some(column) => reader.note(
            "blocks",
            format!("{}: rows with the same value were measured together", plural(&names(&[column]))),
            false,
        ),
        None => reader.note("blocks", "none: all observations are independent of each other".to_owned(), true),
    }
    if sheet.delimiter() != ',' {
        let name = if sheet.delimiter() == '\t' { "tabs" } else { "semicolons" };
        reader.note("fields", format!("what is between {name}"), true);
    }
    Ok(Columns { factor, levels, by, block, skip, measures, taken: reader.taken })
}

fn skip(sheet: &Sheet, given: &IndexMap<String, serde_json::Value>) -> Result<Vec<(usize, Vec<String>)>, StudyError> {
    let one = |(name, value): (&String, &serde_json::Value)| {
        let values =
            value.as_array().map_or_else(|| vec![level_name(value)], |any| any.iter().map(level_name).collect());
        find(sheet, name).map(|column| (column, values)).map_err(|error| error.at_key(steps!["columns", "skip", name]))
    };
    given.iter().map(one).collect()
}

/// The metric with the mapping's defaults for all metrics.
fn with_defaults(metric: &MetricMapping, mapping: &Mapping) -> MetricMapping {
    MetricMapping {
        unit: metric.unit.clone().or_else(|| mapping.unit.clone()),
        better: metric.better.or(mapping.better),
        ..metric.clone()
    }
}

fn find(sheet: &Sheet, name: &str) -> Result<usize, StudyError> {
    sheet.names().iter().position(|known| known == name).ok_or_else(|| {
        let meant = nearest(name, sheet.names().iter().map(String::as_str));
        let message = format!("{} has no column `{name}`, only {}", sheet.file(), one_of(sheet.names()));
        StudyError::new(message).meant(meant)
    })
}

fn plural(names: &[String]) -> String {
    match names {
        [one] => format!("the column {one}"),
        more => format!("the columns {}", more.join(", ")),
    }
}

/// The compared factor, the column of its levels if it has one, and the metrics.
type Form = (String, Option<usize>, IndexMap<String, MetricMapping>);

struct Reader<'a> {
    sheet: &'a Sheet<'a>,
    used: Vec<bool>,
    taken: Vec<Taken>,
}

impl Reader<'_> {
    fn note(&mut self, what: &str, from: String, guessed: bool) {
        self.taken.push(Taken { what: what.to_owned(), from, guessed });
    }

    /// The column with this name; fails if it already has a role.
    fn column(&mut self, name: &str, place: &[Step]) -> Result<usize, StudyError> {
        let column = find(self.sheet, name).map_err(|error| error.at(place))?;
        if std::mem::replace(&mut self.used[column], true) {
            let message = format!("the column `{name}` is named twice, but it can be one thing only");
            return Err(StudyError::new(message).at(place));
        }
        Ok(column)
    }

    fn list(&mut self, key: &str, names: &[String]) -> Result<Vec<usize>, StudyError> {
        names.iter().enumerate().map(|(number, name)| self.column(name, &steps!["columns", key, number])).collect()
    }

    /// Columns without a role.
    fn free(&self) -> Vec<usize> {
        (0..self.used.len()).filter(|column| !self.used[*column]).collect()
    }

    /// Determines whether the table is long or wide, the compared factor, and the metrics.
    fn form(&mut self, mapping: &Mapping, skip: &[(usize, Vec<String>)]) -> Result<Form, StudyError> {
        let wide = mapping.metrics.values().filter(|metric| !metric.wide.is_empty()).count();
        for (name, metric) in &mapping.metrics {
            let place = steps!["metrics", name];
            if metric.value.is_some() != metric.wide.is_empty() {
                let message =
                    format!("the metric `{name}` needs either `value`, its column, or `wide`, a column for each level");
                return Err(StudyError::new(message).at_key(place));
            }
            if wide > 0 && metric.wide.is_empty() {
                let message = format!(
                    "`{name}` has one column, and other metrics a column for each level: all need the same form"
                );
                return Err(StudyError::new(message).at_key(place));
            }
        }
        if wide > 0 {
            let factor = mapping.compare.factor.clone().unwrap_or_else(|| "variant".to_owned());
            return Ok((factor, None, mapping.metrics.clone()));
        }
        let values: Vec<_> = mapping.metrics.values().filter_map(|metric| metric.value.clone()).collect();
        let sheet = self.sheet;
        let is_free = |column: &usize| !values.contains(&sheet.names()[*column]);
        let free: Vec<_> = self.free().into_iter().filter(is_free).collect();
        let (texts, numbers): (Vec<_>, Vec<_>) = free.into_iter().partition(|column| !self.is_numeric(*column, skip));
        let name = |column: usize| sheet.names()[column].clone();
        let Some(factor) = mapping.compare.factor.clone().or_else(|| (texts.len() == 1).then(|| name(texts[0]))) else {
            return self.guess_wide(mapping, &texts, &numbers);
        };
        let levels = self.column(&factor, &steps!["compare", "factor"])?;
        if !mapping.metrics.is_empty() {
            return Ok((factor, Some(levels), mapping.metrics.clone()));
        }
        let values: Vec<_> = numbers.iter().copied().filter(|column| *column != levels).map(name).collect();
        let [value] = &values[..] else {
            let message = format!(
                "the column with the values is unknown; name it (`--value COLUMN`); candidates: {}",
                or_nothing(&values)
            );
            return Err(StudyError::new(message).at(steps!["metrics"]));
        };
        self.note("values", format!("the column `{value}`, the only one left with numbers"), true);
        let metric = MetricMapping { value: Some(value.clone()), ..MetricMapping::default() };
        Ok((factor, Some(levels), [(value.clone(), metric)].into()))
    }

    /// Guesses the form of a wide table: only numeric columns, one per level. Several text columns need a mapping.
    fn guess_wide(&mut self, mapping: &Mapping, texts: &[usize], numbers: &[usize]) -> Result<Form, StudyError> {
        let sheet = self.sheet;
        let names = |columns: &[usize]| columns.iter().map(|column| sheet.names()[*column].clone()).collect::<Vec<_>>();
        let is_counter = |name: &String| COUNTERS.contains(&name.to_lowercase().as_str());
        let plain = texts.is_empty() && numbers.len() > 1 && mapping.metrics.is_empty();
        if !plain || names(numbers).iter().any(is_counter) {
            let message = format!(
                "the compared factor is unknown; name the column with its levels (`--factor COLUMN`), or the columns with \
                 the numbers of each level (`--wide LEVEL=COLUMN,LEVEL=COLUMN`). Columns with words: {}; with numbers: {}",
                or_nothing(&names(texts)),
                or_nothing(&names(numbers))
            );
            return Err(StudyError::new(message).at(steps!["compare", "factor"]));
        }
        let wide: IndexMap<_, _> = names(numbers).into_iter().map(|name| (name.clone(), name)).collect();
        self.note("values", "every remaining column, each a level of its own".to_owned(), true);
        Ok((
            "variant".to_owned(),
            None,
            [("value".to_owned(), MetricMapping { wide, ..MetricMapping::default() })].into(),
        ))
    }

    /// Whether every field of a column is a number or a gap, in rows that are not skipped.
    fn is_numeric(&self, column: usize, skip: &[(usize, Vec<String>)]) -> bool {
        let counts = |row: &&super::sheet::Row| !is_skipped(row, skip);
        let mut fields = self.sheet.rows().iter().filter(counts).map(|row| row.field(column));
        fields.all(|field| is_gap(field) || field.parse::<f64>().is_ok())
    }

    fn measure(&mut self, name: &str, metric: &MetricMapping, long: bool) -> Result<Measure, StudyError> {
        let place = steps!["metrics", name];
        let below = |key: &str| [&place[..], &steps![key]].concat();
        let numbers = match &metric.value {
            Some(value) if long => Numbers::Long(self.column(value, &below("value"))?),
            _ => {
                let column = |(level, column): (&String, &String)| {
                    Ok((level.clone(), self.column(column, &[&below("wide")[..], &steps![level]].concat())?))
                };
                Numbers::Wide(metric.wide.iter().map(column).collect::<Result<_, StudyError>>()?)
            }
        };
        let columns: Vec<_> = match &numbers {
            Numbers::Long(column) => vec![self.sheet.names()[*column].clone()],
            Numbers::Wide(levels) => levels.iter().map(|(_, column)| self.sheet.names()[*column].clone()).collect(),
        };
        let guess = || {
            let units: Vec<_> = columns.iter().map(|column| unit::of_column(column)).collect();
            units[0].filter(|_| units.iter().all(|unit| *unit == units[0]))
        };
        let guessed = if metric.unit.is_none() { guess() } else { None };
        let word = metric.unit.as_deref().or(guessed).unwrap_or("count");
        let (base, factor) = unit::unit(word).map_err(|error| error.at(below("unit")))?;
        let better = metric.better.unwrap_or_else(|| unit::usually(base));
        let which = match better {
            Better::Lower => "lower is better",
            Better::Higher => "higher is better",
        };
        let of = match &numbers {
            Numbers::Long(_) => columns[0].clone(),
            Numbers::Wide(levels) => levels
                .iter()
                .zip(&columns)
                .map(|((level, _), column)| format!("`{column}` for {level}"))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let of = if long { format!("the column `{of}`") } else { of };
        let (unit, from_name) = match (word, guessed) {
            ("count", _) => ("plain numbers".to_owned(), ""),
            (word, Some(_)) => (format!("in {word}"), " by the column's name"),
            (word, None) => (format!("in {word}"), ""),
        };
        let is_guess = metric.unit.is_none() || metric.better.is_none();
        self.note(&format!("metric {name}"), format!("{of}, {unit}{from_name}; {which}"), is_guess);
        Ok(Measure {
            name: name.to_owned(),
            title: metric.title.clone().unwrap_or_else(|| name.to_owned()),
            meaning: metric.meaning.clone().unwrap_or_else(|| "As measured by the author of the table.".to_owned()),
            unit: base,
            better,
            factor,
            numbers,
        })
    }

    /// Rejects columns without a role: an unmapped column may be a factor whose levels must not be pooled.
    fn all_used(&self) -> Result<(), StudyError> {
        let forgotten: Vec<_> = self.free().into_iter().map(|column| self.sheet.names()[column].clone()).collect();
        let Some(first) = forgotten.first() else { return Ok(()) };
        let message = format!(
            "the mapping has no role for {}. If its values are compared separately: `--by {first}`; if rows with the \
             same value were measured together: `--block {first}`; if it does not matter: `--ignore {first}`",
            one_of(&forgotten)
        );
        Err(StudyError::new(message).at_key(steps!["columns"]))
    }
}

pub(super) fn is_skipped(row: &super::sheet::Row, skip: &[(usize, Vec<String>)]) -> bool {
    skip.iter().any(|(column, values)| values.iter().any(|value| value == row.field(*column)))
}

fn or_nothing(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { one_of(names) }
}

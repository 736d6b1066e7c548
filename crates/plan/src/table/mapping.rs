//! The mapping of table columns, as a file or from a command line.

use indexmap::IndexMap;
use serde::Deserialize;
use wirelab_model::claim::Claim;
use wirelab_model::metric::Better;
use wirelab_model::units::Share;

use crate::error::StudyError;
use crate::limits::MAX_TEXT;
use crate::parse::from_toml;

/// The mapping of table columns. Its keys are those of a study file where the meaning is the same.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mapping {
    /// One line for headings. Default: the file name.
    pub title: Option<String>,
    /// The question that the table answers. Default: whether the levels differ.
    pub question: Option<String>,
    /// Limits of the table, besides those of every table.
    pub limits: Option<String>,
    /// Source of the table.
    pub source: Option<String>,
    /// Seeds the bootstrap. Default: 1.
    pub seed: Option<u64>,
    /// Unit of metrics without a unit of their own.
    pub unit: Option<String>,
    /// Direction of improvement, for metrics without their own.
    pub better: Option<Better>,
    /// The comparison.
    pub compare: CompareMapping,
    /// Columns that identify a row.
    pub columns: ColumnsMapping,
    /// Metrics, and the columns with their numbers.
    pub metrics: IndexMap<String, MetricMapping>,
    /// Statements to test, as in a study. Levels are texts: `{ series = "1" }`.
    pub claims: Vec<Claim>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompareMapping {
    /// The factor whose levels are compared. Long tables: the column with the levels; default: the only text column.
    /// Wide tables: a name; default: `variant`.
    pub factor: Option<String>,
    /// The level that the others are compared with. Default: the first one.
    pub baseline: Option<String>,
    /// A second measurement of the baseline under another name: the A/A pair, whose spread is the noise floor.
    pub twin: Option<String>,
    /// The metrics to compare; charts and sentences use the first one. Default: all.
    pub metrics: Option<Vec<String>>,
    /// Differences below this are called equivalent. Default: `5 %`.
    pub margin: Option<Share>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColumnsMapping {
    /// Factors besides the compared one; rows that differ in them are never pooled.
    pub by: Vec<String>,
    /// Column whose equal values mark observations measured together, as in a block of a run. Default: none; all
    /// observations are independent.
    pub block: Option<String>,
    /// Columns without a role.
    pub ignore: Vec<String>,
    /// Rows to omit: a value, or a list of values, by column.
    pub skip: IndexMap<String, serde_json::Value>,
}

/// `[metrics.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricMapping {
    /// Title in reports. Default: the name.
    pub title: Option<String>,
    /// One sentence: what exactly was measured.
    pub meaning: Option<String>,
    /// Unit of the numbers, such as `s`, `ms`, `KiB`, `Mbit/s`, `/s`, `%`. Default: the unit suffix of the column
    /// name, otherwise none.
    pub unit: Option<String>,
    /// Direction of improvement: `lower` or `higher`. Default: `higher` for rates, otherwise `lower`.
    pub better: Option<Better>,
    /// Long tables: the column with the numbers.
    pub value: Option<String>,
    /// Wide tables: the column with the numbers, by level.
    pub wide: IndexMap<String, String>,
}

impl Mapping {
    /// Reads a mapping file. `file` is its name, for messages only.
    ///
    /// # Errors
    /// With file, line and column, if the text is not TOML, or a key or value is unknown.
    pub fn parse(text: &str, file: &str) -> Result<Self, StudyError> {
        if text.len() > MAX_TEXT {
            let message = format!("{file}: the file has {} bytes, and a mapping at most {MAX_TEXT}", text.len());
            return Err(StudyError::new(message));
        }
        toml::from_str(text).map_err(|error| from_toml(&error, text, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_of_a_mapping_is_located_with_the_nearest_one() {
        let message = |text: &str| Mapping::parse(text, "m.toml").unwrap_err().to_string();
        let said = message("[compare]\nbasline = \"h1\"\n");
        assert!(said.starts_with("m.toml:2:1:") && said.contains("did you mean `baseline`?"), "{said}");
        let said = message("[metrics.x]\nbetter = \"less\"\n");
        assert!(said.starts_with("m.toml:2:10:") && said.contains("`lower`"), "{said}");
        let said = message("[compare]\nmargin = \"5\"\n");
        assert!(said.starts_with("m.toml:2:10:") && said.contains("5 %"), "{said}");
    }
}

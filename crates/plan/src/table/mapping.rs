//! What the columns of a table mean, as a file or as a command line says it.

use indexmap::IndexMap;
use serde::Deserialize;
use wirelab_model::claim::Claim;
use wirelab_model::metric::Better;
use wirelab_model::units::Share;

use crate::error::StudyError;
use crate::limits::MAX_TEXT;
use crate::parse::from_toml;

/// What the columns of a table mean. Its keys are those of a study file where they mean the same.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mapping {
    /// One line for headings. Default: the file's name.
    pub title: Option<String>,
    /// The question that the table answers. Default: whether the levels differ.
    pub question: Option<String>,
    /// What the table cannot tell, beyond what no table can.
    pub limits: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// Seeds the bootstrap. Default: 1.
    pub seed: Option<u64>,
    /// The unit of metrics that do not say their own.
    pub unit: Option<String>,
    /// Which direction is an improvement, of metrics that do not say their own.
    pub better: Option<Better>,
    /// What is compared with what.
    pub compare: CompareMapping,
    /// Which columns say where a row belongs.
    pub columns: ColumnsMapping,
    /// Which columns have the numbers: by metric.
    pub metrics: IndexMap<String, MetricMapping>,
    /// Statements to test, as in a study. Levels are texts: `{ series = "1" }`.
    pub claims: Vec<Claim>,
}

/// `[compare]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompareMapping {
    /// The factor whose levels are compared. Long: the column that has them. Wide: a name. Default: the only column without
    /// numbers; wide: `variant`.
    pub factor: Option<String>,
    /// The level that the others are compared with. Default: the first one.
    pub baseline: Option<String>,
    /// A level that is the baseline once more, measured under another name: the A/A pair, whose spread is the noise floor.
    pub twin: Option<String>,
    /// The metrics to compare; the first one is that of charts and sentences. Default: all.
    pub metrics: Option<Vec<String>>,
    /// Differences below this are called equivalent. Default: `5 %`.
    pub margin: Option<Share>,
}

/// `[columns]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ColumnsMapping {
    /// Factors besides the compared one: rows that differ in them are never thrown together.
    pub by: Vec<String>,
    /// The column whose equal values mark observations that were made together, as a block of a run. Default: none; the
    /// observations are independent of each other.
    pub block: Option<String>,
    /// Columns that are not to be used.
    pub ignore: Vec<String>,
    /// Rows to leave out: by column the value that they have, or a list of such values.
    pub skip: IndexMap<String, serde_json::Value>,
}

/// `[metrics.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricMapping {
    /// The words of a report. Default: the name.
    pub title: Option<String>,
    /// One sentence: what exactly was measured.
    pub meaning: Option<String>,
    /// The unit of the numbers, such as `s`, `ms`, `KiB`, `Mbit/s`, `/s`, `%`. Default: the end of the column's name, otherwise none.
    pub unit: Option<String>,
    /// Which direction is an improvement: `lower` or `higher`. Default: `higher` of rates, `lower` of everything else.
    pub better: Option<Better>,
    /// Long: the column of the numbers.
    pub value: Option<String>,
    /// Wide: by level the column of its numbers.
    pub wide: IndexMap<String, String>,
}

impl Mapping {
    /// Reads a mapping file. `file` is its name, for messages only.
    ///
    /// # Errors
    /// With file, line and column, if the text is no TOML, or has a key or value that no mapping has.
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

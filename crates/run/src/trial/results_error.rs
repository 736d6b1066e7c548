//! Why the results of clients cannot be read.

use std::error::Error;
use std::fmt;
use std::io;

use wirelab_stats::HistogramError;

/// Results that a client did not write as its spec says.
#[derive(Debug)]
pub enum ResultsError {
    /// The file cannot be opened.
    Open(io::Error),
    /// The file cannot be read.
    Read(io::Error),
    /// The file has no histograms.
    NotHistograms(serde_json::Error),
    /// The file has no totals.
    NotTotals(serde_json::Error),
    /// A line is no record.
    NotARecord { line: usize, source: serde_json::Error },
    /// The file has more records than fit into memory.
    TooManyRecords { limit: usize },
    /// Clients of a timeline record samples.
    NoSamples,
    /// Clients cannot share the loads of a page.
    SharedPage,
    /// Programs of the user do not share a workload.
    SharedTotals,
    /// The histograms are unusable.
    Histograms(HistogramError),
    /// The results of this client, one of several, cannot be read.
    OfClient { number: u32, source: Box<ResultsError> },
}

impl ResultsError {
    /// For `map_err`: adds the number of the client.
    pub(crate) fn of_client(number: u32) -> impl FnOnce(Self) -> Self {
        move |source| Self::OfClient { number, source: Box::new(source) }
    }
}

impl From<HistogramError> for ResultsError {
    fn from(error: HistogramError) -> Self {
        Self::Histograms(error)
    }
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => write!(f, "its results file cannot be opened: {error}"),
            Self::Read(error) => write!(f, "its results file cannot be read: {error}"),
            Self::NotHistograms(error) => write!(f, "its results are not histograms: {error}"),
            Self::NotTotals(error) => write!(f, "its results are not totals: {error}"),
            Self::NotARecord { line, source } => write!(f, "line {line} of its results is not a record: {source}"),
            Self::TooManyRecords { limit } => {
                write!(f, "it wrote more than {limit} records; use `recording = \"histograms\"`")
            }
            Self::NoSamples => f.write_str("it wrote no samples"),
            Self::SharedTotals => f.write_str("it is a program of the user, and several do not share a workload"),
            Self::SharedPage => f.write_str("it loads pages, which clients do not share"),
            Self::Histograms(error) => error.fmt(f),
            Self::OfClient { number, source } => write!(f, "number {number}: {source}"),
        }
    }
}

impl Error for ResultsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Open(error) | Self::Read(error) => Some(error),
            Self::NotHistograms(error) | Self::NotTotals(error) | Self::NotARecord { source: error, .. } => Some(error),
            Self::Histograms(error) => Some(error),
            Self::OfClient { source, .. } => Some(source),
            Self::TooManyRecords { .. } | Self::NoSamples | Self::SharedPage | Self::SharedTotals => None,
        }
    }
}

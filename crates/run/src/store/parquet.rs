//! Samples as Parquet: one file per trial, written atomically, so that a kill loses at most the trial in flight.
//!
//! One file per trial needs more disk space than one per run, but no file is ever rewritten. `samples/*.parquet`
//! reads as one table in every tool, because each row has trial, block and cell.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wirelab_model::plan::Trial;
use wirelab_model::sample::Sample;

use crate::error::RunError;

/// Version of the columns; stored in each file's metadata as `wirelab.format`.
pub const FORMAT: u32 = 1;

/// Columns in order: name, type and unit. Integers are signed, because R and pandas have no good unsigned ones; 2^63
/// ns are 292 years.
const COLUMNS: [(&str, &str, &str); 16] = [
    ("trial", "required int64", "number"),
    ("block", "required int64", "number"),
    ("cell", "required int64", "number"),
    ("intended_ns", "required int64", "ns"),
    ("start_ns", "required int64", "ns"),
    ("connected_ns", "optional int64", "ns"),
    ("handshake_ns", "optional int64", "ns"),
    ("first_byte_ns", "optional int64", "ns"),
    ("last_byte_ns", "required int64", "ns"),
    ("request", "optional int64", "number"),
    ("bytes_out", "required int64", "B"),
    ("bytes_in", "required int64", "B"),
    ("status", "optional int64", "HTTP status"),
    ("connection", "required int64", "number"),
    ("handshake", "optional binary", "token"),
    ("error", "optional binary", "token"),
];

/// Rows of a row group: limits the memory of readers.
const GROUP: usize = 1 << 20;

/// The file with the samples of a trial. `path` is for messages.
///
/// # Errors
/// If a value does not fit 63 bits.
pub fn file(path: &Path, trial: &Trial, samples: &[Sample]) -> Result<Vec<u8>, RunError> {
    encode(trial, samples).map_err(|error| RunError::Damaged {
        path: path.to_owned(),
        why: format!("cannot encode the samples: {error}"),
    })
}

/// The samples in the content of a file. `path` is for messages.
///
/// # Errors
/// If wirelab did not write this content.
pub fn samples(path: &Path, content: Vec<u8>) -> Result<Vec<Sample>, RunError> {
    decode(Bytes::from(content)).map_err(|error| RunError::Damaged { path: path.to_owned(), why: error.to_string() })
}

fn schema() -> Result<Arc<Type>, ParquetError> {
    let columns: String = COLUMNS
        .iter()
        .map(|(name, kind, _)| {
            let annotation = if kind.ends_with("binary") { " (STRING)" } else { "" };
            format!("{kind} {name}{annotation};")
        })
        .collect();
    parse_message_type(&format!("message sample {{ {columns} }}")).map(Arc::new)
}

fn properties() -> WriterProperties {
    let units: serde_json::Map<_, _> =
        COLUMNS.iter().map(|(name, _, unit)| ((*name).to_owned(), (*unit).into())).collect();
    let mut builder =
        WriterProperties::builder().set_compression(Compression::SNAPPY).set_key_value_metadata(Some(vec![
            KeyValue::new("wirelab.format".to_owned(), FORMAT.to_string()),
            KeyValue::new("wirelab.units".to_owned(), serde_json::Value::Object(units).to_string()),
            KeyValue::new("wirelab.time_zero".to_owned(), "the client's receipt of the second `go`".to_owned()),
        ]));
    // Times ascend and rarely repeat: deltas are small, but a dictionary would contain every value.
    for (name, ..) in COLUMNS.iter().filter(|(_, _, unit)| *unit == "ns") {
        let column = ColumnPath::from(*name);
        builder = builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

fn encode(trial: &Trial, samples: &[Sample]) -> Result<Vec<u8>, ParquetError> {
    let mut writer = SerializedFileWriter::new(Vec::new(), schema()?, Arc::new(properties()))?;
    for group in samples.chunks(GROUP) {
        let mut columns = Columns(writer.next_row_group()?);
        let constant = |value: u64| group.iter().map(move |_| value);
        // In the order of `COLUMNS`.
        columns.required(constant(trial.number.into()))?;
        columns.required(constant(trial.block.into()))?;
        columns.required(constant(trial.cell as u64))?;
        columns.required(group.iter().map(|s| s.intended_ns))?;
        columns.required(group.iter().map(|s| s.start_ns))?;
        columns.optional(group.iter().map(|s| s.connected_ns))?;
        columns.optional(group.iter().map(|s| s.handshake_ns))?;
        columns.optional(group.iter().map(|s| s.first_byte_ns))?;
        columns.required(group.iter().map(|s| s.last_byte_ns))?;
        columns.optional(group.iter().map(|s| s.request.map(u64::from)))?;
        columns.required(group.iter().map(|s| s.bytes_out))?;
        columns.required(group.iter().map(|s| s.bytes_in))?;
        columns.optional(group.iter().map(|s| s.status.map(u64::from)))?;
        columns.required(group.iter().map(|s| s.connection.into()))?;
        columns.tokens(group.iter().map(|s| s.handshake))?;
        columns.tokens(group.iter().map(|s| s.error))?;
        columns.0.close()?;
    }
    writer.into_inner()
}

/// Writes the columns of a row group in order.
struct Columns<'a>(SerializedRowGroupWriter<'a, Vec<u8>>);

impl Columns<'_> {
    fn required(&mut self, values: impl Iterator<Item = u64>) -> Result<(), ParquetError> {
        let values: Vec<i64> = values.map(signed).collect::<Result<_, _>>()?;
        self.column::<Int64Type>(&values, None)
    }

    fn optional(&mut self, values: impl Iterator<Item = Option<u64>> + Clone) -> Result<(), ParquetError> {
        let levels: Vec<i16> = values.clone().map(|value| value.is_some().into()).collect();
        let values: Vec<i64> = values.flatten().map(signed).collect::<Result<_, _>>()?;
        self.column::<Int64Type>(&values, Some(&levels))
    }

    /// Writes values whose JSON form is a string, as that string.
    fn tokens<T: Serialize>(&mut self, values: impl Iterator<Item = Option<T>> + Clone) -> Result<(), ParquetError> {
        let levels: Vec<i16> = values.clone().map(|value| value.is_some().into()).collect();
        let words: Vec<ByteArray> = values.flatten().map(|value| word(&value)).collect::<Result<_, _>>()?;
        self.column::<ByteArrayType>(&words, Some(&levels))
    }

    fn column<T: DataType>(&mut self, values: &[T::T], levels: Option<&[i16]>) -> Result<(), ParquetError> {
        let mut column = self.0.next_column()?.ok_or_else(|| general("more columns than the schema has"))?;
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()
    }
}

fn signed(value: u64) -> Result<i64, ParquetError> {
    i64::try_from(value).map_err(|_| general(format!("{value} does not fit 63 bits")))
}

fn word<T: Serialize>(value: &T) -> Result<ByteArray, ParquetError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Ok(word.into_bytes().into()),
        _ => Err(general("a token that is not a word")),
    }
}

fn general(why: impl Into<String>) -> ParquetError {
    ParquetError::General(why.into())
}

fn decode(file: Bytes) -> Result<Vec<Sample>, ParquetError> {
    let reader = SerializedFileReader::new(file)?;
    let mut samples = Vec::new();
    for index in 0..reader.num_row_groups() {
        let group = Group::new(reader.get_row_group(index)?)?;
        let mut intended = group.required("intended_ns")?;
        let mut start = group.required("start_ns")?;
        let mut connected = group.optional("connected_ns")?;
        let mut secured = group.optional("handshake_ns")?;
        let mut first_byte = group.optional("first_byte_ns")?;
        let mut last_byte = group.required("last_byte_ns")?;
        let mut request = group.newer("request")?;
        let mut bytes_out = group.required("bytes_out")?;
        let mut bytes_in = group.required("bytes_in")?;
        let mut status = group.optional("status")?;
        let mut connection = group.required("connection")?;
        let mut handshake = group.tokens("handshake")?;
        let mut error = group.tokens("error")?;
        samples.reserve(group.rows);
        for _ in 0..group.rows {
            samples.push(Sample {
                intended_ns: next(&mut intended)?,
                start_ns: next(&mut start)?,
                connected_ns: next(&mut connected)?,
                handshake_ns: next(&mut secured)?,
                first_byte_ns: next(&mut first_byte)?,
                last_byte_ns: next(&mut last_byte)?,
                request: next(&mut request)?.map(narrow).transpose()?,
                bytes_out: next(&mut bytes_out)?,
                bytes_in: next(&mut bytes_in)?,
                status: next(&mut status)?.map(narrow).transpose()?,
                connection: narrow(next(&mut connection)?)?,
                handshake: next(&mut handshake)?,
                error: next(&mut error)?,
            });
        }
    }
    Ok(samples)
}

fn next<T>(values: &mut impl Iterator<Item = T>) -> Result<T, ParquetError> {
    values.next().ok_or_else(|| general("a column ends early"))
}

fn narrow<T: TryFrom<u64>>(value: u64) -> Result<T, ParquetError> {
    T::try_from(value).map_err(|_| general(format!("{value} is too large for its column")))
}

/// Reads the columns of a row group by name, so that later versions may add columns.
struct Group<'a> {
    group: Box<dyn RowGroupReader + 'a>,
    rows: usize,
}

impl<'a> Group<'a> {
    fn new(group: Box<dyn RowGroupReader + 'a>) -> Result<Self, ParquetError> {
        let rows = narrow(group.metadata().num_rows().unsigned_abs())?;
        Ok(Self { group, rows })
    }

    fn required(&self, name: &str) -> Result<impl Iterator<Item = u64> + use<>, ParquetError> {
        let values = self.optional(name)?.collect::<Option<Vec<_>>>();
        Ok(values.ok_or_else(|| general(format!("`{name}` has gaps")))?.into_iter())
    }

    fn optional(&self, name: &str) -> Result<impl Iterator<Item = Option<u64>> + use<>, ParquetError> {
        let values = self.column::<Int64Type>(name)?;
        let unsigned = |value: i64| u64::try_from(value).map_err(|_| general(format!("`{name}` holds {value}")));
        let values: Vec<_> = values.into_iter().map(|v| v.map(unsigned).transpose()).collect::<Result<_, _>>()?;
        Ok(values.into_iter())
    }

    /// A column that older files lack.
    fn newer(&self, name: &str) -> Result<impl Iterator<Item = Option<u64>> + use<>, ParquetError> {
        let schema = self.group.metadata().schema_descr();
        let is_there = schema.columns().iter().any(|column| column.name() == name);
        let values: Vec<_> = if is_there { self.optional(name)?.collect() } else { vec![None; self.rows] };
        Ok(values.into_iter())
    }

    fn tokens<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = Option<T>> + use<T>, ParquetError> {
        let token = |word: ByteArray| {
            let word = word.as_utf8()?.to_owned();
            serde_json::from_value(word.into()).map_err(|error| general(format!("`{name}`: {error}")))
        };
        let values = self.column::<ByteArrayType>(name)?;
        let values: Vec<Option<T>> = values.into_iter().map(|v| v.map(token).transpose()).collect::<Result<_, _>>()?;
        Ok(values.into_iter())
    }

    fn column<T: DataType>(&self, name: &str) -> Result<Vec<Option<T::T>>, ParquetError> {
        let schema = self.group.metadata().schema_descr();
        let index = (0..schema.num_columns())
            .find(|index| schema.column(*index).name() == name)
            .ok_or_else(|| general(format!("the file has no column `{name}`")))?;
        let nullable = schema.column(index).max_def_level() > 0;
        let reader: ColumnReader = self.group.get_column_reader(index)?;
        let mut reader: ColumnReaderImpl<T> =
            T::get_column_reader(reader).ok_or_else(|| general(format!("`{name}` has another type")))?;
        let (mut values, mut levels) = (Vec::with_capacity(self.rows), Vec::new());
        let mut read = 0;
        while read < self.rows {
            let (records, ..) = reader.read_records(self.rows - read, Some(&mut levels), None, &mut values)?;
            if records == 0 {
                return Err(general(format!("`{name}` ends after {read} of {} rows", self.rows)));
            }
            read += records;
        }
        if !nullable {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use wirelab_model::outcome::ErrorKind;
    use wirelab_model::sample::Handshake;

    use super::*;

    fn write(path: &Path, trial: &Trial, samples: &[Sample]) -> Result<(), RunError> {
        std::fs::write(path, file(path, trial, samples)?).map_err(RunError::io("cannot write", path))
    }

    fn read(path: &Path) -> Result<Vec<Sample>, RunError> {
        samples(path, std::fs::read(path).unwrap())
    }

    const TRIAL: Trial = Trial { number: 42, block: 3, position: 1, cell: 7, seed: 1 };

    fn sample(n: u64) -> Sample {
        let ok = !n.is_multiple_of(5);
        Sample {
            intended_ns: n * 1000,
            start_ns: n * 1000 + n % 7,
            connected_ns: n.is_multiple_of(2).then_some(n * 1000 + 10),
            handshake_ns: n.is_multiple_of(3).then_some(n * 1000 + 20),
            first_byte_ns: ok.then_some(n * 1000 + 30),
            last_byte_ns: n * 1000 + 40,
            request: n.is_multiple_of(2).then_some(3),
            bytes_out: n,
            bytes_in: n * n,
            status: ok.then_some(200),
            connection: (n % 11) as u32,
            handshake: [None, Some(Handshake::Full), Some(Handshake::EarlyAccepted)][(n % 3) as usize],
            error: (!ok).then(|| ErrorKind::ALL[(n % 13) as usize]),
        }
    }

    #[test]
    fn samples_survive_a_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        for count in [0, 1, 2, 1000] {
            let path = folder.path().join("samples.parquet");
            let samples: Vec<_> = (0..count).map(sample).collect();
            write(&path, &TRIAL, &samples).unwrap();
            assert_eq!(read(&path).unwrap(), samples, "{count} samples");
        }
    }

    #[test]
    fn each_row_names_its_trial_block_and_cell_and_the_file_its_units() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.parquet");
        write(&path, &TRIAL, &[sample(1), sample(2)]).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let group = Group::new(reader.get_row_group(0).unwrap()).unwrap();
        for (name, expected) in [("trial", 42), ("block", 3), ("cell", 7)] {
            assert_eq!(group.required(name).unwrap().collect::<Vec<_>>(), [expected; 2], "{name}");
        }
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let units = metadata.iter().find(|pair| pair.key == "wirelab.units").unwrap().value.as_deref().unwrap();
        assert!(units.contains(r#""intended_ns":"ns""#) && units.contains(r#""bytes_in":"B""#), "{units}");
    }

    #[test]
    fn a_damaged_file_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.parquet");
        write(&path, &TRIAL, &[sample(1)]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("samples.parquet"), "{message}");
    }

    #[test]
    fn a_time_beyond_63_bits_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let late = Sample { last_byte_ns: u64::MAX, ..sample(1) };
        assert!(write(&folder.path().join("samples.parquet"), &TRIAL, &[late]).is_err());
    }
}

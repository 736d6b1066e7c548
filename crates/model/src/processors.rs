//! Processors (logical CPUs) of a trial's processes: as a study asks for them, and as the kernel allowed them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::missing::Missing;

/// Numbers of processors, in the kernel's form of a list: `0`, `0-3`, `0,2-5` (cpuset(7)). Not empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorSet(BTreeSet<u32>);

impl ProcessorSet {
    /// The largest number of a processor: that of the kernel's `cpu_set_t` (sched_setaffinity(2)).
    pub const LARGEST: u32 = 1023;

    /// The set of these processors; `None` if there is none.
    #[must_use]
    pub fn of(numbers: impl IntoIterator<Item = u32>) -> Option<Self> {
        let numbers: BTreeSet<_> = numbers.into_iter().collect();
        (!numbers.is_empty()).then_some(Self(numbers))
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Number of processors, at least 1.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether the set has this processor.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.0.contains(&number)
    }

    /// Whether `other` has all processors of this set.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// The processors of both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }
}

impl fmt::Display for ProcessorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in self.iter() {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                _ => ranges.push((number, number)),
            }
        }
        let words = ranges.into_iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

/// A text that is no list of processors.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is not a list of processors such as `0`, `0-3` or `0,2-5`, with numbers up to 1023")]
pub struct NoProcessors(String);

impl FromStr for ProcessorSet {
    type Err = NoProcessors;

    fn from_str(text: &str) -> Result<Self, NoProcessors> {
        let number = |word: &str| {
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            word.parse().ok().filter(|number| is_number && *number <= Self::LARGEST)
        };
        let range = |term: &str| {
            let (first, last) = term.split_once('-').unwrap_or((term, term));
            let (first, last) = (number(first.trim())?, number(last.trim())?);
            (first <= last).then_some(first..=last)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.and_then(|ranges| Self::of(ranges.into_iter().flatten())).ok_or_else(|| NoProcessors(text.to_owned()))
    }
}

impl Serialize for ProcessorSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProcessorSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ProcessorSet {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ProcessorSet".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["0", "0-3", "0,2-5"] })
    }
}

/// The processors on which client and server may run: the setting `cpus`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Cpus {
    /// All; the kernel decides.
    #[default]
    Free,
    /// One processor for client and server together.
    Shared,
    /// Half of the cores for the client, the other half for the server.
    Split,
    /// These processors.
    Lists(PerSide),
}

/// A list of processors for each side. A side without a list may use all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerSide {
    /// Clients, their sidecar and the control plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ProcessorSet>,
    /// Servers and their sidecars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ProcessorSet>,
}

const FREE: &str = "free";
const SHARED: &str = "shared";
const SPLIT: &str = "split";

impl Cpus {
    /// Whether the kernel decides, as without the setting.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::Free
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PerSide { client, server } = match self {
            Self::Free => return f.write_str(FREE),
            Self::Shared => return f.write_str(SHARED),
            Self::Split => return f.write_str(SPLIT),
            Self::Lists(lists) => lists,
        };
        let named = [("client", client), ("server", server)];
        let words = named.into_iter().filter_map(|(side, set)| Some(format!("{side} {}", set.as_ref()?)));
        f.write_str(&words.collect::<Vec<_>>().join(", "))
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Lists(lists) => lists.serialize(serializer),
            word => serializer.collect_str(word),
        }
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Cpus;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "`{FREE}`, `{SHARED}`, `{SPLIT}`, or lists such as `{{ client = \"0\", server = \"1-3\" }}`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<Cpus, E> {
                match word {
                    FREE => Ok(Cpus::Free),
                    SHARED => Ok(Cpus::Shared),
                    SPLIT => Ok(Cpus::Split),
                    other => Err(E::unknown_variant(other, &[FREE, SHARED, SPLIT])),
                }
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Cpus, A::Error> {
                let lists = PerSide::deserialize(MapAccessDeserializer::new(map))?;
                if lists == PerSide::default() {
                    return Err(de::Error::invalid_length(0, &"a list for `client`, `server` or both"));
                }
                Ok(Cpus::Lists(lists))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Cpus {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cpus".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let lists = generator.subschema_for::<PerSide>();
        schemars::json_schema!({
            "oneOf": [{ "enum": [FREE, SHARED, SPLIT] }, lists],
            "examples": [SHARED, SPLIT, FREE]
        })
    }
}

/// The processors that a trial's processes could use, read from the kernel after the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InForce {
    /// Clients, their sidecar and the control plane.
    pub client: Allowed,
    /// Servers and their sidecars; absent if wirelab started none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Allowed>,
    /// Whether a client and a server could use the same physical core through two of its processors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_core: bool,
}

/// The processors of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Allowed {
    /// All processors that some thread could use.
    Processors(ProcessorSet),
    /// Unknown, and not controlled by wirelab.
    NotRead(Missing),
}

impl Allowed {
    /// The processors, if they are known.
    #[must_use]
    pub const fn processors(&self) -> Option<&ProcessorSet> {
        match self {
            Self::Processors(set) => Some(set),
            Self::NotRead(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ProcessorSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_list_is_written_as_the_kernel_writes_it() {
        for (text, written) in [("0", "0"), ("3,1-2, 0", "0-3"), ("5,0-1,7-7", "0-1,5,7"), ("1023", "1023")] {
            assert_eq!(set(text).to_string(), written);
        }
        assert_eq!(set("0-2").and(&set("2,9")), set("0-2,9"));
        assert!(set("1").is_within(&set("0-1")) && !set("0-2").is_within(&set("0-1")));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "1-", "-1", "3-1", "a", "0,", "+1", "1024", "0-99999999999"] {
            let error = text.parse::<ProcessorSet>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is not a list of processors")), "{error}");
        }
    }

    #[test]
    fn the_setting_is_read_as_it_is_written() {
        let read = |json: &str| serde_json::from_str::<Cpus>(json);
        for (json, words) in [
            (r#""free""#, "free"),
            (r#""shared""#, "shared"),
            (r#""split""#, "split"),
            (r#"{"client":"0","server":"1-3"}"#, "client 0, server 1-3"),
            (r#"{"client":"0"}"#, "client 0"),
        ] {
            let cpus = read(json).unwrap();
            assert_eq!((serde_json::to_string(&cpus).unwrap().as_str(), cpus.to_string().as_str()), (json, words));
        }
        for (json, words) in [
            (r#""apart""#, "unknown variant `apart`, expected one of `free`, `shared`, `split`"),
            (r#"{"clients":"0"}"#, "unknown field `clients`, expected `client` or `server`"),
            ("{}", "expected a list for `client`, `server` or both"),
            ("3", "expected `free`, `shared`, `split`, or lists such as `{ client = \"0\", server = \"1-3\" }`"),
            (r#"{"client":"x"}"#, "`x` is not a list of processors"),
        ] {
            let error = read(json).unwrap_err().to_string();
            assert!(error.contains(words), "{json}: {error}");
        }
    }

    #[test]
    fn a_record_keeps_the_reason_why_processors_are_unknown() {
        let server = Some(Allowed::NotRead(Missing::RemoteProcess));
        let record = InForce { client: Allowed::Processors(set("0-1")), server, shares_core: false };
        let json =
            r#"{"client":"0-1","server":{"not_measured":"not a process of this machine","code":"remote-process"}}"#;
        assert_eq!(serde_json::to_string(&record).unwrap(), json);
        assert_eq!(serde_json::from_str::<InForce>(json).unwrap(), record);
    }
}

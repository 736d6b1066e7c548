//! Selection of cluster nodes by their labels.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Required labels of a node. Written as for `kubectl --selector`: `disk=ssd`, `disk=ssd,arch=arm64`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Vec<(String, String)>);

impl Labels {
    /// Iterates over keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    fn parse(text: &str) -> Option<Self> {
        let is_word = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let label = |term: &str| {
            let (key, value) = term.trim().split_once('=')?;
            let (key, value) = (key.trim(), value.trim());
            let is_right = !key.is_empty() && is_word(key) && is_word(value) && !value.contains('/');
            is_right.then(|| (key.to_owned(), value.to_owned()))
        };
        let mut labels = text.split(',').map(label).collect::<Option<Vec<_>>>()?;
        labels.sort();
        // No node has two values for one key.
        let has_once = labels.windows(2).all(|pair| pair[0].0 != pair[1].0);
        has_once.then_some(Self(labels))
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<_> = self.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&labels.join(","))
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let expected = "labels of nodes, each key once: `disk=ssd`, `disk=ssd,kubernetes.io/arch=arm64`";
            de::Error::invalid_value(de::Unexpected::Str(&text), &expected)
        })
    }
}

impl JsonSchema for Labels {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Labels".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["disk=ssd", "disk=ssd,kubernetes.io/arch=arm64"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_in_any_order_and_written_in_one() {
        let labels = Labels::parse("kubernetes.io/arch = arm64, disk=ssd,node-role.kubernetes.io/worker=").unwrap();
        assert_eq!(labels.to_string(), "disk=ssd,kubernetes.io/arch=arm64,node-role.kubernetes.io/worker=");
        assert_eq!(Labels::parse(&labels.to_string()), Some(labels));
        for wrong in ["", "disk", "=ssd", "disk=ssd,", "disk=ssd,disk=hdd", "disk!=ssd", "disk=a/b", "disk in (a)"] {
            assert_eq!(Labels::parse(wrong), None, "{wrong}");
        }
    }
}

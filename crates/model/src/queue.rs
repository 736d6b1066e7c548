//! The queue of a link, in bytes or in packets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::units::Size;

/// Capacity of a drop-tail queue. The frame in transmission does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Capacity in bytes of whole frames.
    Bytes(Size),
    /// Capacity in packets of any size, as in most routers.
    Packets(u32),
}

impl Queue {
    /// Maximum capacity in packets.
    pub const MOST_PACKETS: u32 = 1_000_000;

    /// Whether the queue has room for a frame of this length.
    #[must_use]
    pub const fn has_room(self, waiting_frames: u64, waiting_bytes: u64, length: u64) -> bool {
        match self {
            Self::Bytes(size) => waiting_bytes + length <= size.bytes(),
            Self::Packets(packets) => waiting_frames < packets as u64,
        }
    }

    /// Capacity in bytes; `None` for a queue of packets.
    #[must_use]
    pub const fn size(self) -> Option<Size> {
        match self {
            Self::Bytes(size) => Some(size),
            Self::Packets(_) => None,
        }
    }

    /// Bytes in a queue that is full of frames of this length.
    #[must_use]
    pub const fn bytes_full_of(self, length: u64) -> u64 {
        match self {
            Self::Bytes(size) => size.bytes(),
            Self::Packets(packets) => packets as u64 * length,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once("packet") {
            Some((count, "" | "s")) => {
                let count = count.trim().parse().ok()?;
                (1..=Self::MOST_PACKETS).contains(&count).then_some(Self::Packets(count))
            }
            Some(_) => None,
            None => text.parse().ok().map(Self::Bytes),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(size) => size.fmt(f),
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            let expected =
                format!("a size such as `256 KiB`, or 1 to {} packets such as `100 packets`", Self::MOST_PACKETS);
            de::Error::invalid_value(de::Unexpected::Str(&text), &expected.as_str())
        })
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "examples": ["256 KiB", "100 packets"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_written_as_they_are_read() {
        for (text, queue) in [
            ("256 KiB", Queue::Bytes(Size(256 * 1024))),
            ("1 packet", Queue::Packets(1)),
            ("100 packets", Queue::Packets(100)),
        ] {
            assert_eq!(Queue::parse(text), Some(queue), "{text}");
            assert_eq!(queue.to_string(), text);
        }
        for text in ["", "100", "0 packets", "1000001 packets", "-1 packets", "3 packetss", "packets", "5 pigeons"] {
            assert_eq!(Queue::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_queue_of_packets_ignores_their_size() {
        let (bytes, packets) = (Queue::Bytes(Size(3000)), Queue::Packets(2));
        assert!(bytes.has_room(1, 1500, 1500) && !bytes.has_room(1, 1501, 1500));
        assert!(packets.has_room(1, 65_000, 65_000) && !packets.has_room(2, 2, 1));
        assert_eq!((bytes.bytes_full_of(1514), packets.bytes_full_of(1514)), (3000, 3028));
    }
}

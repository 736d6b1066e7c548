//! The datagrams between prober and reflector.

/// The secret of a measurement, without which the reflector answers nothing.
pub type Token = [u64; 2];

/// Size of a datagram without padding, in bytes.
pub(super) const SIZE: usize = 80;

/// The purpose of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The reflector answers with a datagram of the wanted length and mark.
    Echo,
    /// The reflector only counts it.
    Load,
    /// The reflector answers with its counts of the phase.
    Report,
    /// The reflector sends load.
    Flood,
}

const KINDS: [Kind; 4] = [Kind::Echo, Kind::Load, Kind::Report, Kind::Flood];

/// A question, or its answer, which repeats the question's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    pub token: Token,
    pub kind: Kind,
    /// Part of the measurement; the reflector counts the arrivals of one.
    pub phase: u32,
    /// Number of the question in its phase.
    pub number: u32,
    /// Time of the question on the prober's clock, in nanoseconds.
    pub asked_ns: u64,
    /// Wanted length of the answer; in the answer, the length of the question.
    pub length: u32,
    /// Wanted mark of the answer; in the answer, the mark with which the question arrived.
    pub mark: u8,
    /// In the answer: the remaining hops with which the question arrived.
    pub hops_left: u8,
    /// In the answer: its number among the answers of the phase.
    pub answer: u32,
    /// Further numbers, by kind.
    pub more: [u64; 4],
}

impl Packet {
    /// A question that is answered with a datagram of the smallest size.
    pub(super) const fn question(token: Token, kind: Kind, phase: u32, number: u32) -> Self {
        Self {
            token,
            kind,
            phase,
            number,
            asked_ns: 0,
            length: SIZE as u32,
            mark: 0,
            hops_left: 0,
            answer: 0,
            more: [0; 4],
        }
    }

    /// Writes it to the front of a buffer of at least [`SIZE`] bytes.
    pub(super) fn write(&self, buffer: &mut [u8]) {
        let bytes = [self.kind as u8, self.mark, self.hops_left, 0].map(u32::from);
        let kind = bytes.iter().fold(0, |all, byte| all << 8 | byte);
        let small = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let words = [
            self.token[0],
            self.token[1],
            small(kind, self.phase),
            small(self.number, self.length),
            self.asked_ns,
            small(self.answer, 0),
        ];
        for (place, word) in buffer.chunks_exact_mut(8).zip(words.iter().chain(&self.more)) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads a received datagram; `None` if it is none of this measurement.
    pub(super) fn read(datagram: &[u8], token: Token) -> Option<Self> {
        let mut words = [0_u64; SIZE / 8];
        for (word, bytes) in words.iter_mut().zip(datagram.get(..SIZE)?.chunks_exact(8)) {
            *word = u64::from_be_bytes(bytes.try_into().expect("8 bytes"));
        }
        let [high, low] = [32, 0].map(|shift| words.map(|word| (word >> shift) as u32));
        let [kind, mark, hops_left, _] = high[2].to_be_bytes();
        let read = Self {
            token: [words[0], words[1]],
            kind: *KINDS.get(kind as usize)?,
            phase: low[2],
            number: high[3],
            asked_ns: words[4],
            length: low[3],
            mark,
            hops_left,
            answer: high[5],
            more: [words[6], words[7], words[8], words[9]],
        };
        (read.token == token).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written_and_only_with_its_token() {
        let token = [1 << 63, 7];
        for kind in KINDS {
            let packet = Packet {
                asked_ns: u64::MAX - 1,
                length: 65_507,
                mark: 0xb9,
                hops_left: 63,
                answer: 12,
                more: [1, 2, 3, u64::MAX],
                ..Packet::question(token, kind, 5, u32::MAX)
            };
            let mut buffer = vec![0xff; 1500];
            packet.write(&mut buffer);
            assert_eq!(Packet::read(&buffer, token), Some(packet));
            assert_eq!(Packet::read(&buffer, [0, 7]), None);
            assert_eq!(Packet::read(&buffer[..SIZE - 1], token), None);
        }
    }
}

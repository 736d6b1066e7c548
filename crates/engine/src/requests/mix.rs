//! A mix of several requests with weights and data.

use std::cell::{Cell, RefCell};

use wirelab_contract::mix::MixedRequest;
use wirelab_contract::spec::{ClientSpec, Request};

use super::expectation::{Check, Form};
use super::messages::Reader;
use crate::refusal::Refusal;
use crate::rounds::Rounds;
use crate::schedule::Share;

/// The largest sum of the weights of a mix: each round is a list of that length.
const LONGEST_ROUND: u64 = 100_000;

/// A request to send.
#[derive(Debug, Clone, Copy)]
pub struct Pick {
    /// Its number among the prepared requests ([`prepare`]).
    pub number: usize,
    /// The number of the request in the mix; absent without a mix.
    pub request: Option<u32>,
    /// Size of its body in bytes.
    pub body_size: u64,
}

/// Prepares every request of a spec: one, or those of the mix with all their variants in order.
///
/// # Errors
///
/// Those of `prepare`.
pub fn prepare<T>(
    spec: &ClientSpec,
    mut prepare: impl FnMut(&ClientSpec) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    if spec.mix.is_empty() {
        return Ok(vec![prepare(spec)?]);
    }
    let mut single = spec.clone();
    let mix = std::mem::take(&mut single.mix);
    let variants = mix.into_iter().flat_map(|request| request.variants);
    let each = variants.map(|request| {
        single.request = request;
        prepare(&single)
    });
    each.collect()
}

/// The mix of one thread.
#[derive(Debug)]
pub(super) struct Mix {
    requests: Vec<Member>,
    rounds: RefCell<Rounds>,
}

/// A request of the mix.
#[derive(Debug)]
struct Member {
    name: String,
    /// Number of its first variant.
    first: usize,
    /// Body sizes of its variants.
    sizes: Vec<u64>,
    /// The variant to take next, and the distance to the one after it: threads take variants in turn.
    next: Cell<usize>,
    step: usize,
    check: Check,
}

impl Mix {
    /// The mix of the spec; `None` if the client repeats one request.
    pub fn of(spec: &ClientSpec, share: Share) -> Result<Option<Self>, Refusal> {
        if spec.mix.is_empty() {
            return Ok(None);
        }
        let total: u64 = spec.mix.iter().map(|request| u64::from(request.weight)).sum();
        if !(1..=LONGEST_ROUND).contains(&total) {
            return Err(Refusal::unsupported(format!(
                "the weights of `mix` add up to {total}; the sum must be from 1 to {LONGEST_ROUND}"
            )));
        }
        let mut requests = Vec::with_capacity(spec.mix.len());
        let mut first = 0;
        for request in &spec.mix {
            requests.push(Member::of(request, first, share, spec.protocol.is_grpc())?);
            first += request.variants.len();
        }
        let rounds = Rounds::new(spec.mix.iter().map(|request| request.weight), spec.seed, share);
        Ok(Some(Self { requests, rounds: RefCell::new(rounds) }))
    }

    /// Picks the next request.
    pub fn pick(&self) -> Pick {
        let number = self.rounds.borrow_mut().next_number();
        let member = &self.requests[number as usize];
        let variant = member.next.get();
        member.next.set((variant + member.step) % member.sizes.len());
        Pick { number: member.first + variant, request: Some(number), body_size: member.sizes[variant] }
    }

    /// The first variant of every request.
    pub fn firsts(&self) -> impl Iterator<Item = Pick> {
        (0..).zip(&self.requests).map(|(number, member)| Pick {
            number: member.first,
            request: Some(number),
            body_size: member.sizes[0],
        })
    }

    /// The check of the response to a request.
    pub fn check(&self, request: u32) -> &Check {
        &self.requests[request as usize].check
    }

    /// The name of a request.
    pub fn name(&self, request: u32) -> &str {
        &self.requests[request as usize].name
    }
}

impl Member {
    fn of(request: &MixedRequest, first: usize, share: Share, is_grpc: bool) -> Result<Self, Refusal> {
        if request.variants.is_empty() {
            return Err(Refusal::unsupported(format!("the request `{}` of `mix` has no variants", request.name)));
        }
        let form = if is_grpc { Form::Messages(reader(request)?) } else { Form::Body };
        let sizes: Vec<_> = request.variants.iter().map(|variant: &Request| variant.body_size).collect();
        Ok(Self {
            name: request.name.clone(),
            first,
            next: Cell::new(share.index as usize % sizes.len()),
            step: share.of as usize,
            sizes,
            check: Check::of(&request.expect, form)?,
        })
    }
}

/// What reads the messages of responses, if paths into their JSON are expected.
fn reader(request: &MixedRequest) -> Result<Option<Reader>, Refusal> {
    match &request.method {
        _ if request.expect.json.is_empty() => Ok(None),
        Some(method) => Reader::of(method).map(Some),
        None => Err(Refusal::unsupported(format!(
            "paths into the JSON of the response to `{}`, because its `method` is unknown",
            request.name
        ))),
    }
}

#[cfg(all(test, feature = "load"))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::client_spec;

    fn mixed(name: &str, weight: u32, rows: usize) -> MixedRequest {
        let variant = |row| Request { path: format!("/{name}/{row}"), ..client_spec("h1c").request };
        MixedRequest {
            name: name.to_owned(),
            weight,
            variants: (0..rows).map(variant).collect(),
            expect: Default::default(),
            method: None,
        }
    }

    fn spec(mix: Vec<MixedRequest>) -> ClientSpec {
        ClientSpec { mix, ..client_spec("h1c") }
    }

    #[test]
    fn every_round_has_each_request_as_often_as_its_weight_says_in_an_order_of_the_seed() {
        let spec = spec(vec![mixed("a", 1, 1), mixed("b", 3, 1), mixed("c", 6, 1)]);
        let share = Share { index: 0, of: 1 };
        let picks = |spec: &ClientSpec| -> Vec<_> {
            let mix = Mix::of(spec, share).unwrap().unwrap();
            (0..1000).map(|_| mix.pick().request.unwrap()).collect()
        };
        let all = picks(&spec);
        for round in all.chunks(10) {
            let count = |wanted| round.iter().filter(|request| **request == wanted).count();
            assert_eq!((count(0), count(1), count(2)), (1, 3, 6));
        }
        assert_eq!(all, picks(&spec));
        assert_ne!(all, picks(&ClientSpec { seed: 2, ..spec }));
    }

    #[test]
    fn the_threads_together_use_each_row_once_before_any_row_is_used_again() {
        let spec = spec(vec![mixed("a", 1, 12), mixed("b", 1, 1)]);
        let mut used: BTreeMap<usize, u32> = BTreeMap::new();
        for index in 0..3 {
            let mix = Mix::of(&spec, Share { index, of: 3 }).unwrap().unwrap();
            for pick in std::iter::repeat_with(|| mix.pick()).filter(|pick| pick.request == Some(0)).take(4) {
                *used.entry(pick.number).or_default() += 1;
            }
        }
        assert_eq!(used, (0..12).map(|row| (row, 1)).collect());
    }

    #[test]
    fn prepared_requests_are_numbered_as_they_are_picked() {
        let spec = spec(vec![mixed("a", 1, 2), mixed("b", 1, 2)]);
        let paths = prepare(&spec, |one| Ok(one.request.path.clone())).unwrap();
        assert_eq!(paths, ["/a/0", "/a/1", "/b/0", "/b/1"]);
        let mix = Mix::of(&spec, Share { index: 0, of: 1 }).unwrap().unwrap();
        assert_eq!(mix.firsts().map(|pick| &*paths[pick.number]).collect::<Vec<_>>(), ["/a/0", "/b/0"]);
    }

    #[test]
    fn a_mix_that_nothing_can_be_drawn_from_is_refused() {
        let share = Share { index: 0, of: 1 };
        for mix in [vec![mixed("a", 0, 1)], vec![mixed("a", 1, 0)], vec![mixed("a", 200_000, 1)]] {
            assert!(matches!(Mix::of(&spec(mix), share), Err(Refusal::Unsupported(_))));
        }
    }
}

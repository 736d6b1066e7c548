//! The descriptors that a server of gRPC itself reports (gRPC, `server-reflection.md`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost::Message;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::mix::Content;
use wirelab_contract::spec::{ClientSpec, Request};

use crate::call::{UNIMPLEMENTED, call};
use crate::refusal::{Failure, Refusal};

/// The versions of the service, newest first; they differ in nothing else.
const VERSIONS: [&str; 2] = ["v1", "v1alpha"];

/// Largest number of questions for imports: each import may have further ones.
const MOST_ROUNDS: u32 = 100;

/// `NOT_FOUND` (gRPC, `statuscodes.md`).
const NOT_FOUND: i32 = 5;

/// What a server reports about a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reflected {
    /// Its file and all imports, as a `FileDescriptorSet`. Imports that the server does not know are missing.
    Descriptors(Vec<u8>),
    /// It has no such service, only these.
    UnknownService {
        /// Their full names.
        known: Vec<String>,
    },
    /// It has no service for reflection.
    NoReflection,
}

/// `ServerReflectionRequest`, with one of these fields.
#[derive(Clone, PartialEq, Message)]
struct Question {
    #[prost(string, optional, tag = "3")]
    file_by_filename: Option<String>,
    #[prost(string, optional, tag = "4")]
    file_containing_symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    list_services: Option<String>,
}

/// `ServerReflectionResponse`, with one of these fields.
#[derive(Clone, PartialEq, Message)]
struct Reply {
    #[prost(message, optional, tag = "4")]
    files: Option<Files>,
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
    #[prost(message, optional, tag = "7")]
    error: Option<Complaint>,
}

/// `FileDescriptorResponse`.
#[derive(Clone, PartialEq, Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    encoded: Vec<Vec<u8>>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    service: Vec<Service>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

/// `ErrorResponse`.
#[derive(Clone, PartialEq, Message)]
struct Complaint {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// The fields of a `FileDescriptorProto` that are needed here.
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "3")]
    imports: Vec<String>,
}

/// Asks the server of a spec for the descriptors of a service, with these header fields. Checks `stop` about ten times
/// a second; if set, the wait ends.
///
/// # Errors
///
/// [`Refusal`] if the server does not answer, or answers with another error than those of [`Reflected`].
pub fn reflect(
    spec: &ClientSpec,
    service: &str,
    headers: &[(String, String)],
    stop: &AtomicBool,
) -> Result<Reflected, Refusal> {
    for version in VERSIONS {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let ask = |questions: &[Question]| ask(spec, &path, headers, questions, stop);
        let list = Question { list_services: Some(String::new()), ..Question::default() };
        let symbol = Question { file_containing_symbol: Some(service.to_owned()), ..Question::default() };
        let Some(replies) = ask(&[symbol, list])? else { continue };
        let [of_symbol, of_list] = replies.as_slice() else {
            return Err(wrong(format!("{} answers to 2 questions", replies.len())));
        };
        let mut files = BTreeMap::new();
        match (&of_symbol.files, &of_symbol.error) {
            (Some(found), _) => add(&mut files, found)?,
            (None, Some(complaint)) if complaint.code == NOT_FOUND => {
                let listed = of_list.services.iter().flat_map(|services| &services.service);
                return Ok(Reflected::UnknownService { known: listed.map(|service| service.name.clone()).collect() });
            }
            (None, Some(complaint)) => return Err(wrong(format!("error {}: {}", complaint.code, complaint.message))),
            (None, None) => return Err(wrong("an answer without files".to_owned())),
        }
        complete(&mut files, ask)?;
        return Ok(Reflected::Descriptors(set(&files)));
    }
    Ok(Reflected::NoReflection)
}

/// The files by name, each with its imports and its encoding.
type Known = BTreeMap<String, (Vec<String>, Vec<u8>)>;

fn add(files: &mut Known, found: &Files) -> Result<(), Refusal> {
    for encoded in &found.encoded {
        let file = File::decode(encoded.as_slice()).map_err(|error| wrong(format!("a file is damaged: {error}")))?;
        files.insert(file.name, (file.imports, encoded.clone()));
    }
    Ok(())
}

/// Asks for imports until there are no unknown ones, or the server knows no more of them.
fn complete(
    files: &mut Known,
    ask: impl Fn(&[Question]) -> Result<Option<Vec<Reply>>, Refusal>,
) -> Result<(), Refusal> {
    for _ in 0..MOST_ROUNDS {
        let mut missing: Vec<_> = files.values().flat_map(|(imports, _)| imports).cloned().collect();
        missing.sort();
        missing.dedup();
        missing.retain(|import| !files.contains_key(import));
        let of_file = |name| Question { file_by_filename: Some(name), ..Question::default() };
        let questions: Vec<_> = missing.into_iter().map(of_file).collect();
        let before = files.len();
        if !questions.is_empty() {
            let replies = ask(&questions)?.unwrap_or_default();
            replies.iter().filter_map(|reply| reply.files.as_ref()).try_for_each(|found| add(files, found))?;
        }
        if files.len() == before {
            break;
        }
    }
    Ok(())
}

/// A `FileDescriptorSet`: the files as the server encoded them, each in field 1.
fn set(files: &Known) -> Vec<u8> {
    let encoded = files.values().map(|(_, encoded)| encoded.clone()).collect();
    Files { encoded }.encode_to_vec()
}

/// Sends questions; `None` if the server does not have the service.
fn ask(
    spec: &ClientSpec,
    path: &str,
    headers: &[(String, String)],
    questions: &[Question],
    stop: &AtomicBool,
) -> Result<Option<Vec<Reply>>, Refusal> {
    let messages: Vec<_> = questions.iter().map(Message::encode_to_vec).collect();
    let request = Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        body_size: messages.iter().map(|message| message.len() as u64).sum(),
        body: Some(Content::Messages(messages.iter().map(|message| STANDARD.encode(message)).collect())),
        headers: headers.to_vec(),
        expect: None,
    };
    let answer = call(&ClientSpec { request, mix: Vec::new(), ..spec.clone() }, stop)?;
    if answer.status == UNIMPLEMENTED {
        return Ok(None);
    }
    let messages = answer.succeeded()?;
    let replies = messages.iter().map(|message| Reply::decode(message.as_slice()));
    let replies: Result<_, _> = replies.collect();
    replies.map(Some).map_err(|error| wrong(format!("a damaged answer: {error}")))
}

fn wrong(what: String) -> Refusal {
    Refusal::Failed(Failure::new(ErrorKind::Protocol, format!("asking the server for its descriptors: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(name: &str, imports: &[&str]) -> Vec<u8> {
        File { name: name.to_owned(), imports: imports.iter().map(|&import| import.to_owned()).collect() }
            .encode_to_vec()
    }

    #[test]
    fn imports_are_asked_for_until_the_server_knows_no_more() {
        let server = BTreeMap::from([("b", encoded("b", &["c", "lost"])), ("c", encoded("c", &[]))]);
        let answer = |questions: &[Question]| {
            let reply = |question: &Question| {
                let file = server.get(question.file_by_filename.as_deref().unwrap());
                Reply { files: file.map(|file| Files { encoded: vec![file.clone()] }), ..Reply::default() }
            };
            Ok(Some(questions.iter().map(reply).collect()))
        };
        let mut files = Known::new();
        add(&mut files, &Files { encoded: vec![encoded("a", &["b"])] }).unwrap();
        complete(&mut files, answer).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        let written = Files::decode(set(&files).as_slice()).unwrap();
        assert_eq!(written.encoded[1], server["b"]);
    }
}

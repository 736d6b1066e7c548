//! Calls of gRPC among the requests of users: their keys, and the descriptors of their methods.

use std::path::PathBuf;

use prost_reflect::MethodDescriptor;
use wirelab_model::request::WrittenRequest;

use super::error::RequestError;
use super::render::{Sources, read};
use super::schema::{Schema, parts};

/// Refuses a key of the other kind of request: HTTP, or a call of gRPC.
pub(super) fn check_keys(request: &WrittenRequest, is_grpc: bool) -> Result<(), RequestError> {
    let expect = &request.expect;
    let keys = [
        ("expect.status", expect.status.is_some(), false),
        ("expect.messages", expect.messages.is_some(), true),
        ("protoset", request.protoset.is_some(), true),
    ];
    match keys.into_iter().find(|(_, is_set, of_grpc)| *is_set && *of_grpc != is_grpc) {
        Some((key, ..)) => Err(RequestError::WrongKind { key, is_grpc }),
        None => Ok(()),
    }
}

/// The descriptors of services that were read: by their file, or by the service without one.
#[derive(Default)]
pub(super) struct Schemas(Vec<(Result<PathBuf, String>, Schema)>);

impl Schemas {
    /// The method that a request calls.
    pub fn method(
        &mut self,
        request: &WrittenRequest,
        headers: &[(String, String)],
        sources: &dyn Sources,
    ) -> Result<MethodDescriptor, RequestError> {
        let (path, file) = (request.path(), &request.protoset);
        let wrong = |error| RequestError::Schema { path: file.clone(), error };
        let (service, _) = parts(path).map_err(wrong)?;
        let key = file.clone().ok_or_else(|| service.to_owned());
        if let Some((_, schema)) = self.0.iter().find(|(known, _)| *known == key) {
            return schema.method(path).map_err(wrong);
        }
        let bytes = match file {
            Some(file) => read(file, sources)?,
            None => sources
                .reflect(service, headers)
                .map_err(RequestError::Reflection)?
                .ok_or_else(|| RequestError::NoDescriptors { method: path.to_owned() })?,
        };
        let schema = Schema::read(&bytes).map_err(wrong)?;
        let method = schema.method(path).map_err(wrong)?;
        self.0.push((key, schema));
        Ok(method)
    }
}

//! The descriptors of gRPC services, as the server of a load reports them.

use std::sync::atomic::AtomicBool;

use wirelab_endpoint::reflection::{Reflected, reflect};
use wirelab_model::spec::ClientSpec;
use wirelab_plan::own::{RequestError, SchemaError, Unreported};

use crate::failure::Failure;
use crate::target::Target;

/// Asks the server of the spec for the descriptors of a service, with these header fields.
pub fn ask(
    target: &Target,
    spec: &ClientSpec,
    service: &str,
    headers: &[(String, String)],
    stop: &AtomicBool,
) -> Result<Option<Vec<u8>>, Unreported> {
    match reflect(spec, service, headers, stop) {
        Ok(Reflected::Descriptors(set)) => Ok(Some(set)),
        Ok(Reflected::UnknownService { known }) => {
            let error = SchemaError::UnknownService { name: service.to_owned(), known };
            Err(Box::new(RequestError::Schema { path: None, error }))
        }
        Ok(Reflected::NoReflection) => Err(Box::new(Failure::input(format!(
            "the types of `{service}` are unknown: {} has no reflection service (grpc.reflection). Give --protoset FILE, \
             which `protoc --include_imports --descriptor_set_out=FILE service.proto` writes",
            target.place()
        )))),
        Err(refusal) => Err(Box::new(Failure::failed(target.unanswered(spec.protocol, &refusal)))),
    }
}

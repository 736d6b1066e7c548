//! The services of gRPC that a server has, by their descriptors.

use std::collections::HashSet;
use std::fmt;

use prost_reflect::prost::Message;
use prost_reflect::prost_types::FileDescriptorSet;
use prost_reflect::{DescriptorPool, MethodDescriptor};
use wirelab_model::nearest::nearest;

/// How to write a descriptor set.
const REMEDY: &str = "write the file with `protoc --include_imports --descriptor_set_out=FILE service.proto`";

/// The largest number of names in a message.
const MOST_NAMES: usize = 20;

/// Why descriptors do not describe a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaError {
    /// The bytes are no descriptor set.
    NoSet {
        /// What is wrong with them.
        why: String,
    },
    /// Files of the set import files that it lacks.
    MissingImports {
        /// Their names.
        files: Vec<String>,
    },
    /// A file is written in a syntax that wirelab does not read, such as an edition.
    Syntax {
        /// Its name.
        file: String,
        /// The syntax as the file says, such as `editions`.
        syntax: String,
    },
    /// The path is not `/package.Service/Method`.
    NoMethodPath {
        /// The path as written in the URL or the request.
        path: String,
    },
    /// No service has this name.
    UnknownService {
        /// Its full name.
        name: String,
        /// The full names of the services.
        known: Vec<String>,
    },
    /// The service has no such method.
    UnknownMethod {
        /// The full name of the service.
        service: String,
        /// The name of the method.
        name: String,
        /// The names of its methods.
        known: Vec<String>,
    },
}

/// Services with the types of their messages.
#[derive(Debug, Clone)]
pub(super) struct Schema(DescriptorPool);

impl Schema {
    /// Reads a `FileDescriptorSet`.
    pub fn read(bytes: &[u8]) -> Result<Self, SchemaError> {
        let no_set = |why: String| SchemaError::NoSet { why };
        let set = FileDescriptorSet::decode(bytes).map_err(|error| no_set(error.to_string()))?;
        if set.file.is_empty() {
            return Err(no_set("it describes no file".to_owned()));
        }
        let names: HashSet<_> = set.file.iter().map(|file| file.name()).collect();
        let mut missing: Vec<String> = set.file.iter().flat_map(|file| file.dependency.iter().cloned()).collect();
        missing.retain(|import| !names.contains(import.as_str()));
        missing.sort();
        missing.dedup();
        if !missing.is_empty() {
            return Err(SchemaError::MissingImports { files: missing });
        }
        if let Some(file) =
            set.file.iter().find(|file| !matches!(file.syntax.as_deref(), None | Some("proto2" | "proto3")))
        {
            return Err(SchemaError::Syntax { file: file.name().to_owned(), syntax: file.syntax().to_owned() });
        }
        // From the bytes, because the types of `prost` drop unknown options.
        DescriptorPool::decode(bytes).map(Self).map_err(|error| no_set(error.to_string()))
    }

    /// The method that a path names.
    pub fn method(&self, path: &str) -> Result<MethodDescriptor, SchemaError> {
        let (service, name) = parts(path)?;
        let Some(found) = self.0.get_service_by_name(service) else {
            let known = self.0.services().map(|service| service.full_name().to_owned()).collect();
            return Err(SchemaError::UnknownService { name: service.to_owned(), known });
        };
        let method = found.methods().find(|method| method.name() == name);
        method.ok_or_else(|| SchemaError::UnknownMethod {
            service: service.to_owned(),
            name: name.to_owned(),
            known: found.methods().map(|method| method.name().to_owned()).collect(),
        })
    }
}

/// The service and the method of a path.
pub(super) fn parts(path: &str) -> Result<(&str, &str), SchemaError> {
    let parts = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    parts
        .filter(|(service, name)| !service.is_empty() && !name.is_empty() && !name.contains(['/', '?']))
        .ok_or_else(|| SchemaError::NoMethodPath { path: path.to_owned() })
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSet { why } => write!(f, "no descriptor set ({why}); {REMEDY}"),
            Self::MissingImports { files } => {
                write!(f, "the set lacks what its files import: {}; {REMEDY}", listed(files))
            }
            Self::Syntax { file, syntax } => write!(
                f,
                "the file `{file}` has the syntax `{syntax}`, but wirelab reads `proto2` and `proto3`; send encoded messages \
                 instead (--body @FILE, `body_file`)"
            ),
            Self::NoMethodPath { path } => {
                write!(
                    f,
                    "the path `{path}` names no method; a call of gRPC needs one such as `/package.Service/Method`"
                )
            }
            Self::UnknownService { name, known } => {
                write!(f, "no service `{name}`{}, only {}", meant(name, known), listed(known))
            }
            Self::UnknownMethod { service, name, known } => {
                write!(
                    f,
                    "the service `{service}` has no method `{name}`{}, only {}",
                    meant(name, known),
                    listed(known)
                )
            }
        }
    }
}

impl std::error::Error for SchemaError {}

fn meant(name: &str, known: &[String]) -> String {
    let found = nearest(name, known.iter().map(String::as_str));
    found.map(|found| format!(" (did you mean `{found}`?)")).unwrap_or_default()
}

/// Names, separated by commas; not all of many.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names if names.len() > MOST_NAMES => {
            format!("{} and {} more", names[..MOST_NAMES].join(", "), names.len() - MOST_NAMES)
        }
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixture::shop;
    use super::super::message::encode;
    use super::*;

    #[test]
    fn a_path_leads_to_its_method_and_a_misspelt_one_to_the_nearest_names() {
        let schema = Schema::read(&shop(&[])).unwrap();
        assert_eq!(schema.method("/shop.Cart/Put").unwrap().full_name(), "shop.Cart.Put");
        for (path, words) in [
            ("/shop.Cart/Putt", "the service `shop.Cart` has no method `Putt` (did you mean `Put`?), only Put, Add"),
            ("/shop.Card/Put", "no service `shop.Card` (did you mean `shop.Cart`?), only shop.Cart"),
            ("/Put", "names no method"),
            ("/shop.Cart/Put/1", "names no method"),
            ("/", "names no method"),
        ] {
            let why = schema.method(path).unwrap_err().to_string();
            assert!(why.contains(words), "{path}: {why}");
        }
    }

    #[test]
    fn bytes_that_are_no_complete_descriptor_set_are_refused_with_the_remedy() {
        for (bytes, words) in [
            (&b""[..], "describes no file"),
            (b"syntax = \"proto3\";", "no descriptor set"),
            (&shop(&[])[..40], "no descriptor set"),
            (&shop(&["b.proto", "a.proto"]), "lacks what its files import: a.proto, b.proto"),
        ] {
            let why = Schema::read(bytes).unwrap_err().to_string();
            assert!(why.contains(words) && why.contains("--include_imports"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_set_is_read_or_refused(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = shop(&[]);
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            if let Ok(method) = Schema::read(&bytes).and_then(|schema| schema.method("/shop.Cart/Put")) {
                let _ = encode(&method, r#"{"count": 1, "items": [{"name": "a"}], "state": "PAID"}"#);
            }
        }
    }
}
